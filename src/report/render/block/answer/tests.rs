//! Answers, remedies and bars of reports made by hand.

use super::super::tests::{level_1, report, text};
use super::*;
use bench::{Hierarchy, Options, rejected};
use std::time::Duration;
use tma::Core;

fn bound(name: &'static str, cycles: f64) -> Bound {
    Bound {
        name,
        cycles,
        low: cycles,
        high: cycles,
        how: "measured: nops".into(),
        ..Bound::default()
    }
}

/// A block that the dependency of 4 cycles explains.
fn explained() -> Measurement {
    let mut hierarchy = Hierarchy::not_measured("no PMU counts here", &level_1());
    hierarchy.bound = Some(Class::Dependency);
    hierarchy.verdict = "dependency: its longest chain takes 4.00".into();
    // A sum of latencies that are ranges: as low as their low ends.
    let chain = Bound {
        low: 3.0,
        how: "computed from latencies: imul".into(),
        is_computed: true,
        path: vec!["imul rax,rbx".into()],
        assumed: true,
        ..bound("dependency", 4.0)
    };
    let bounds = vec![bound("front-end", 1.0), chain];
    Measurement { bounds, hierarchy, ..report() }
}

#[test]
fn the_answer_comes_first_cycles_bound_remedy_and_bars_on_one_scale() {
    let expected = "\
4.000 core cycles per iteration (3.990 to 4.010), 2 instructions, IPC 0.50, clock tsc
  bound by:  a loop-carried dependency through registers: imul rax,rbx -> next iteration (3.000 to
             4.000 cycles)
  to lower:  shorten this chain; a reduction can be split over several accumulators; --what-if
             measures what helps

cycles per iteration: measured, and lower bounds (shaded: the rest of a range)
  measured            4.000  ########################
  dependency          3.000  ##################------  <- bounds the time; explains 3.000 cycles of
                                                       it, perhaps all; computed from assumed
                                                       latencies (3.000 to 4.000)
  front-end           1.000  ######                    measured

evidence: its longest chain takes 4.00
";
    let text = text(&explained());
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_bound_explains_no_time_that_only_its_upper_end_reaches() {
    let mut report = explained();
    report.bounds[1].low = 4.0;
    let whole = text(&report);
    assert!(whole.contains("<- explains the time; computed"), "{whole}");
    assert!(!whole.contains("shaded"), "{whole}");
    report.bounds[1].low = 1.0;
    let part = text(&report);
    assert!(!part.contains("explains the time") && part.contains("######------------"), "{part}");
    // Nor is it said to come up to it where nothing is decided.
    report.hierarchy.bound = Some(Class::Undecided);
    let open = text(&report);
    assert!(
        open.contains("undecided: dependency (1.000 to 4.000 cycles) may come up to the time"),
        "{open}"
    );
    report.bounds.push(bound("ports", 3.9));
    let both = text(&report);
    assert!(
        both.contains("undecided: ports comes up to the time, and dependency (1.000"),
        "{both}"
    );
}

#[test]
fn the_change_measured_to_help_most_is_part_of_the_answer() {
    let change = |change: &str, cycles: f64| WhatIf {
        change: change.into(),
        cycles: Some(cycles),
        low: Some(cycles),
        high: Some(cycles),
        ..WhatIf::default()
    };
    let what_if = vec![change("without `add`", 3.0), change("chain broken", 1.0)];
    let text = |what_if| text(&Measurement { what_if, ..explained() });
    let said = text(what_if);
    assert!(said.contains("  to lower:  chain broken: 1.000 cycles (-75 %), measured\n"), "{said}");
    // A copy that carries the chain: without it there is another one.
    let copy = WhatIf { cuts: true, ..change("without `mov`", 1.0) };
    let said = text(vec![copy.clone(), change("without `add`", 3.0)]);
    assert!(
        said.contains("  to lower:  without `add`: 3.000 cycles (-25 %), measured\n"),
        "{said}"
    );
    assert!(
        said.contains("without `mov`: 1.000 cycles (1.000 to 1.000); the dependency"),
        "{said}"
    );
    assert!(text(vec![copy.clone()]).contains("measured; the dependency that it carries is cut"));
    // Nothing was gained, so there is nothing to be said of it.
    let longer = WhatIf { cycles: Some(9.0), low: Some(9.0), high: Some(9.0), ..copy };
    assert!(!text(vec![longer]).contains("is cut with it"));
}

#[test]
fn a_refuted_bound_comes_last_has_no_bar_and_explains_nothing() {
    let mut report = explained();
    report.bounds.push(Bound { refuted: true, ..bound("ports", 5.0) });
    let text = text(&report);
    let line = text.lines().find(|l| l.starts_with("  ports")).unwrap();
    assert!(line.contains("5.000") && line.contains("refuted: above the measurement"), "{text}");
    assert!(!line.contains('#') && !line.contains("explains"), "{text}");
    let after = text.lines().skip_while(|l| !l.starts_with("  ports")).nth(1);
    assert_eq!(after, Some(""), "{text}");
}

#[test]
fn a_remedy_asks_for_more_than_was_given_and_only_where_that_may_help() {
    let of = |options: Options| {
        let settings = Some(Settings::of(&options, "tsc", None));
        let report = rejected("90", "made up".to_owned(), &Core::default());
        remedy(&Measurement { status: Status::Unstable, settings, ..report }).unwrap()
    };
    let usual = of(Options::default());
    assert!(usual.contains("--budget 30000") && usual.contains("--thorough"), "{usual}");
    let quick = of(Options::quick());
    assert!(!quick.contains("--thorough") && quick.contains("without --quick"), "{quick}");
    let most = of(Options { budget: Duration::from_secs(40), ..Options::thorough() });
    assert_eq!(most, "`tdtool doctor` shows what keeps the machine busy");
    let refused = rejected("c3", "it would leave the block".to_owned(), &Core::default());
    assert_eq!(remedy(&refused), None);
}

#[test]
fn a_bar_is_as_long_as_its_share() {
    let drawn = |low, high, ascii| drawn([low, high], 24, ascii).trim_end().to_owned();
    assert_eq!(drawn(1.0, 1.0, true), "#".repeat(24));
    assert_eq!(drawn(0.25, 0.25, true), "#".repeat(6));
    assert_eq!(drawn(0.25, 0.25, false), "█".repeat(6));
    // A sixteenth of 24 columns: one and a half.
    assert_eq!(drawn(1.0 / 16.0, 1.0 / 16.0, false), "█▌");
    assert_eq!(drawn(2.0, 2.0, true), "#".repeat(24));
    assert_eq!(drawn(f64::NAN, f64::NAN, true), "");
    assert_eq!(drawn(0.25, 0.5, true), "######------");
    assert_eq!(drawn(1.0 / 16.0, 4.0, false), format!("█▌{}", "░".repeat(22)));
}
