//! The live collector against a scripted kernel: groups, repeats, multiplexing.
//!
//! Expected counts follow from the script: rate × time, nothing else.

use super::script::{SECOND, count, group, kernel, near, request, run};
use super::{intel, table};
use pmu::scripted::Scripted;
use pmu::{Exit, Target};
use std::collections::BTreeMap;
use std::time::Duration;
use tma::counts::GroupCounts;
use tma::quantity::Missing;

#[test]
fn one_group_counts_exactly_and_gives_enough_readings() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let measured = run(&mut kernel(), &request(&machine, &table, &groups, Target::Command));
    assert_eq!(count(&measured, 0, 1), Ok(SECOND));
    assert_eq!(count(&measured, 0, 3), Ok(3.0 * SECOND));
    let GroupCounts::Live { readings, .. } = &measured.counts[0].groups[0] else {
        panic!("not live")
    };
    assert!((8..=64).contains(&readings.len()), "{} readings", readings.len());
    assert_eq!(measured.exit, Some(Exit::Status(0)));
    near(measured.software.task_clock.clone().expect("a clock"), 1.0, 1e-6);
    near(measured.software.cpus_used().expect("a ratio"), 1.0, 1e-6);
}

#[test]
fn a_short_run_and_a_long_one_keep_a_fitting_number_of_readings() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    for (lifetime, least) in [(40, 8), (250, 31), (10_000, 31), (100_000, 31)] {
        let mut kernel = Scripted { lifetime: Duration::from_millis(lifetime), ..kernel() };
        let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
        let GroupCounts::Live { readings, .. } = &measured.counts[0].groups[0] else {
            panic!("not live")
        };
        assert!((least..=64).contains(&readings.len()), "{lifetime} ms: {}", readings.len());
        assert_eq!(count(&measured, 0, 1), Ok(lifetime as f64 * 1e6));
    }
}

#[test]
fn multiplexed_groups_are_scaled() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3]), group(&[4, 5, 6]), group(&[7, 8, 9])];
    let measured = run(&mut kernel(), &request(&machine, &table, &groups, Target::Command));
    for n in 1..=9 {
        near(count(&measured, 0, n).expect("counted"), f64::from(n) * SECOND, 0.01);
    }
    for group in &measured.counts[0].groups {
        near(group.running_share().expect("a share"), 1.0 / 3.0, 0.05);
    }
}

#[test]
fn without_multiplexing_each_group_has_a_run_of_its_own() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3]), group(&[4, 5, 6])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.multiplex = false;
    assert_eq!(request.runs(), 2);
    let mut kernel = kernel();
    let measured = run(&mut kernel, &request);
    assert_eq!(kernel.started, 2);
    for n in 1..=6 {
        assert_eq!(count(&measured, 0, n), Ok(f64::from(n) * SECOND));
    }
    assert!(measured.counts[0].groups.iter().all(|g| g.running_share() == Some(1.0)));
}

#[test]
fn repeats_add_up_and_are_kept_apart() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.repeats = 3;
    let measured = run(&mut kernel(), &request);
    assert_eq!(count(&measured, 0, 2), Ok(6.0 * SECOND));
    assert_eq!(measured.repeats.len(), 3);
    assert_eq!(measured.repeats[1][0].groups[0].total(0), Ok(SECOND));
    assert_eq!(measured.counts[0].constants[1], Some(3000.0));
    near(measured.software.task_clock.expect("a clock"), 1.0, 1e-6);
}

#[test]
fn a_group_too_large_is_split_with_the_clock_in_both_parts() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3, 4, 5, 6])];
    let measured = run(&mut kernel(), &request(&machine, &table, &groups, Target::Command));
    for n in 1..=6 {
        near(count(&measured, 0, n).expect("counted"), f64::from(n) * SECOND, 0.01);
    }
    assert_eq!(measured.notes.len(), 1, "{:?}", measured.notes);
}

#[test]
fn counters_taken_by_the_watchdog_split_groups_instead_of_losing_them() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3, 4])];
    let mut kernel = Scripted { busy: BTreeMap::from([(u32::MAX, 1)]), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    for n in 1..=4 {
        near(count(&measured, 0, n).expect("counted"), f64::from(n) * SECOND, 0.01);
    }
    assert!(measured.notes[0].contains("watchdog"), "{:?}", measured.notes);
}

#[test]
fn no_counter_left_is_not_counted_never_0() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2])];
    let mut kernel = Scripted { busy: BTreeMap::from([(u32::MAX, 4)]), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    assert!(matches!(count(&measured, 0, 1), Err(Missing::NotCounted(_))));
}

#[test]
fn an_event_the_kernel_does_not_know_is_missing_alone() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let mut kernel = Scripted { absent: [2].into(), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    assert_eq!(count(&measured, 0, 3), Ok(3.0 * SECOND));
    let Err(Missing::NotSupported(what)) = count(&measured, 0, 2) else { panic!("counted") };
    assert!(what.starts_with("e02"), "{what}");
}

#[test]
fn kernels_that_cannot_read_inherited_groups_are_read_event_by_event() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let mut kernel = Scripted { no_inherited_groups: true, ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    for n in 1..=3 {
        assert_eq!(count(&measured, 0, n), Ok(f64::from(n) * SECOND));
    }
    assert!(kernel.opened.iter().all(|(e, _)| !e.group_read));
}

#[test]
fn a_group_that_cannot_be_read_at_the_end_is_missing_with_the_cause() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2]), group(&[3, 4])];
    let request = request(&machine, &table, &groups, Target::Command);
    let ms = Duration::from_millis;
    let unreadable = |from, to| Scripted { unreadable: vec![(3, ms(from), ms(to))], ..kernel() };
    // From 900 ms on, or never: what came in is not known.
    for from in [900, 0] {
        let measured = run(&mut unreadable(from, 9000), &request);
        assert_eq!(count(&measured, 0, 2), Ok(2.0 * SECOND));
        let Err(Missing::NotMeasured(why)) = count(&measured, 0, 4) else { panic!("counted") };
        assert!(why.contains("Input/output error") || why.contains("I/O error"), "{why}");
        assert!(measured.notes.is_empty(), "{:?}", measured.notes);
    }
    // For some time: later readings have it all.
    let measured = run(&mut unreadable(300, 400), &request);
    assert_eq!(count(&measured, 0, 4), Ok(4.0 * SECOND));
    assert_eq!(measured.notes.len(), 1, "{:?}", measured.notes);
}
