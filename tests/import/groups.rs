//! Groups, intervals and processors of recorded counts: found again, and summed.

use super::{import, recording, table, total};
use crate::support::files::zen4_intervals;
use profile::counts::{Options, Over, SoftwareKind, aggregate, counts};
use std::fs;
use tma::counts::GroupCounts;
use tma::quantity::Missing;
use tma::tables::Const;

#[test]
fn groups_come_from_shares_repeats_and_the_other_intervals() {
    // Block 21 prints equal shares for neighbouring groups; block 0 shows where they part.
    let zen4 = table("zen4");
    let r = recording("zen4-two-intervals.csv");
    assert!(r.skipped.is_empty(), "{:?}", r.skipped);
    let imported = counts(&r, &zen4, Options::default()).unwrap();
    for counts in &imported.counts {
        let sizes: Vec<usize> = counts.groups.iter().map(|g| g.events().count()).collect();
        assert_eq!(sizes, [5, 4, 3, 3]);
    }
    // Every group keeps its own cycles.
    let cycles: Vec<f64> = imported.counts[1]
        .groups
        .iter()
        .map(|g| {
            let at = g.events().position(|e| e == zen4.clocks).unwrap();
            g.total(at).unwrap()
        })
        .collect();
    assert_eq!(cycles, [33159827306.0, 33155255849.0, 33169607697.0, 33174251783.0]);
    let share = imported.counts[0].groups[3].running_share().unwrap();
    assert!((share - 0.2508).abs() < 1e-12, "{share}");
    assert_eq!(imported.counts[1].constants[Const::DurationMs.index()], Some(1000.0));

    // The same where block 21 is alone: a repeat is cut where the table's nodes stay whole.
    let text = fs::read_to_string(zen4_intervals()).unwrap();
    let alone: String = text.lines().skip(15).map(|l| format!("{l}\n")).collect();
    let imported = import(&alone, "zen4");
    let sizes: Vec<usize> = imported.counts[0].groups.iter().map(|g| g.events().count()).collect();
    assert_eq!(sizes, [5, 4, 3, 3]);
}

#[test]
fn run_times_tell_groups_with_equal_shares_apart() {
    let text = "10,,ex_ret_ops,500000,50.00,,\n20,,ls_not_halted_cyc,500000,50.00,,\n\
                30,,ex_ret_ucode_ops,500017,50.00,,\n40,,ls_not_halted_cyc,500017,50.00,,\n";
    let imported = import(text, "zen4");
    assert_eq!(imported.counts[0].groups.len(), 2);
    // What always ran, ran together, whatever the run times.
    let text = text
        .replace("50.00", "100.00")
        .replace("40,,ls_not", "40,,ex_no_retire.not_complete,1,100.00,,\n40,,ls_not");
    let imported = import(&text, "zen4");
    assert_eq!(imported.counts[0].groups[0].events().count(), 2 + 1);
}

#[test]
fn one_cpus_duration_is_everyones() {
    let imported = import(
        "CPU0,5,,cycles,9,100.00,,\nCPU1,6,,cycles,9,100.00,,\nCPU0,2000000,ns,duration_time,9,100.00,,\n",
        "zen4",
    );
    for counts in &imported.counts {
        assert_eq!(counts.constants[Const::DurationMs.index()], Some(2.0));
    }
    let sum = aggregate(&imported.counts, Over::Scopes);
    assert_eq!(sum.len(), 1);
    assert_eq!(total(&table("zen4"), &sum[0], "ls_not_halted_cyc"), Ok(11.0));
    assert_eq!(sum[0].constants[Const::DurationMs.index()], Some(2.0));
}

#[test]
fn sums_over_intervals_add_times_and_keep_what_is_missing() {
    let zen4 = table("zen4");
    let imported = import(
        "     1.000000000,5,,cycles,9,50.00,,\n     1.000000000,1,,ex_ret_ops,9,50.00,,\n     \
         2.000000000,6,,cycles,9,40.00,,\n     2.000000000,<not counted>,,ex_ret_ops,0,0.00,,\n",
        "zen4",
    );
    let sum = aggregate(&imported.counts, Over::Intervals);
    assert_eq!(total(&zen4, &sum[0], "ls_not_halted_cyc"), Ok(11.0));
    let why = total(&zen4, &sum[0], "ex_ret_ops").unwrap_err();
    assert!(matches!(&why, Missing::NotMeasured(w) if w.contains("1 of 2")), "{why}");
    assert_eq!(sum[0].constants[Const::DurationMs.index()], Some(2000.0));
    assert!(
        matches!(&sum[0].groups[0], GroupCounts::Imported { running: Some(r), .. } if *r == 0.4)
    );
}

/// Intervals of one second. In the second, nothing ran; in the third, one of two groups got no
/// counter. By hand: the clock has all that ran, 5 + 7; the ops of 1 s stand for 2 s, 2 * 3.
#[test]
fn an_idle_interval_adds_nothing_and_an_uncounted_group_is_taken_as_in_the_others() {
    let zen4 = table("zen4");
    let imported = import(
        "     1.0,5,,cycles,9,50.00,,\n     1.0,3,,ex_ret_ops,8,49.00,,\n     \
         2.0,<not counted>,,cycles,0,0.00,,\n     2.0,<not counted>,,ex_ret_ops,0,0.00,,\n     \
         3.0,7,,cycles,9,50.00,,\n     3.0,<not counted>,,ex_ret_ops,0,0.00,,\n",
        "zen4",
    );
    let sum = aggregate(&imported.counts, Over::Intervals);
    assert_eq!(total(&zen4, &sum[0], "ls_not_halted_cyc"), Ok(12.0));
    assert_eq!(total(&zen4, &sum[0], "ex_ret_ops"), Ok(6.0));
    assert_eq!(sum[0].notes.len(), 1, "{:?}", sum[0].notes);
}

#[test]
fn software_counts_need_no_table() {
    let imported = counts(&recording("perf-plain.csv"), &table("zen4"), Options::default());
    let imported = imported.unwrap();
    assert_eq!(imported.software[0].values["page-faults"], Ok(74.0));
    assert_eq!(SoftwareKind::from_name("faults").unwrap().name(), "page-faults");
}
