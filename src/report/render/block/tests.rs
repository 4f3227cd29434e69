//! Reports made by hand, and the parts of their text that a reader needs.

use super::*;
use bench::Class;
use bench::{
    Assumed, Assumption, Bound, Code, FaultLocation, FormResult, Forms, Found, Hierarchy, Line,
    Miss, Mode, Outcome, SCHEMA, Samples, Status, Throughput, Values, Verdict, WhatIf,
};

fn line(offset: &str, bytes: &str, text: &str) -> Line {
    Line { offset: offset.into(), bytes: bytes.into(), text: text.into(), ..Line::default() }
}

fn form(cycles: f64, copies: usize) -> FormResult {
    let range = Some(cycles);
    FormResult { cycles: range, low: range, high: range, copies, reason: None }
}

fn level_1() -> Vec<(String, String)> {
    vec![("Frontend_Bound".into(), "Frontend Bound".into()), ("Retiring".into(), "Retiring".into())]
}

fn assumption(name: Assumed, outcome: Outcome, how: &str) -> Assumption {
    Assumption { name, outcome, how: how.into() }
}

fn text(report: &Measurement) -> String {
    render(report, &Style { ascii: true, ..Style::default() })
}

fn in_full(report: &Measurement) -> String {
    render(report, &Style { ascii: true, verbose: true, ..Style::default() })
}

/// Compares a text with `snapshots/NAME.snap`.
macro_rules! assert_shown {
    ($name:expr, $text:expr) => {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!($name, $text);
        })
    };
}

/// The lines of each text that the report of [`report`] has not.
fn beyond(texts: &[String]) -> String {
    let clean = text(&report());
    let own = |text: &String| -> String {
        let lines = text.lines().filter(|line| !clean.lines().any(|known| known == *line));
        lines.map(|line| format!("{line}\n")).collect()
    };
    texts.iter().map(own).collect::<Vec<_>>().join("----\n")
}

/// Two instructions, measured, everything held.
fn report() -> Measurement {
    Measurement {
        settings: None,
        machine: None,
        schema: SCHEMA,
        block: Code {
            name: None,
            hex: "4801d8480fafc3".into(),
            instructions: vec![
                line("0x0", "4801d8", "add rax,rbx"),
                line("0x3", "480fafc3", "imul rax,rbx"),
            ],
        },
        status: Status::Ok,
        reason: None,
        disturbed: false,
        interrupted: false,
        location: None,
        throughput: Some(Throughput {
            cycles: 4.0,
            low: 3.99,
            high: 4.01,
            modes: vec![Mode { cycles: 4.0, share: 1.0 }],
            clock: "tsc",
        }),
        ipc: Some(0.5),
        forms: Some(Forms { unrolled: form(4.0, 192), looped: form(4.01, 24) }),
        headline: "unrolled",
        closed: None,
        executions: Vec::new(),
        notes: Vec::new(),
        assumptions: vec![assumption(Assumed::L1Data, Outcome::Held, "no memory")],
        alias_pairs: Vec::new(),
        bounds: Vec::new(),
        hierarchy: Hierarchy::not_measured("no PMU counts here", &level_1()),
        what_if: Vec::new(),
        misses: Vec::new(),
        samples: Samples { accepted: 192, contended: 0, clock_changed: 0, void: Vec::new() },
        values: Some(Values::default()),
        pages: Vec::new(),
        sandbox: Vec::new(),
    }
}

#[test]
fn a_clean_report_in_full() {
    assert_shown!("clean", text(&report()));
}

#[test]
fn assumptions_that_hold_are_one_line_and_violated_ones_come_with_their_evidence() {
    let assumptions = vec![
        assumption(Assumed::L1Data, Outcome::Held, "no memory"),
        assumption(Assumed::L1Code, Outcome::Held, "it is short"),
        assumption(Assumed::LineCrossing, Outcome::Violated, "instruction 1"),
    ];
    let report = Measurement { assumptions, ..report() };
    assert_shown!("assumptions", [text(&report), in_full(&report)].join("----\n"));
}

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

fn verdict(class: Class, why: &str) -> Explanation {
    Explanation::Verdict(Verdict { class, why: why.to_owned() }, String::new())
}

/// A block that the dependency of 4 cycles explains.
fn explained() -> Measurement {
    let mut hierarchy = Hierarchy::not_measured("no PMU counts here", &level_1());
    hierarchy.explanation = Some(verdict(Class::Dependency, "its longest chain takes 4.00"));
    // A sum of latencies that are ranges: as low as their low ends.
    let chain = Bound {
        low: 3.0,
        how: "computed from latencies: imul".into(),
        found: Found::Latencies,
        path: vec!["imul rax,rbx".into()],
        assumed: true,
        ..bound("dependency", 4.0)
    };
    let bounds = vec![bound("front-end", 1.0), chain];
    Measurement { bounds, hierarchy, ..report() }
}

#[test]
fn the_answer_comes_first_cycles_bound_remedy_and_bars_on_one_scale() {
    assert_shown!("answer", text(&explained()));
}

#[test]
fn a_bound_explains_no_time_that_only_its_upper_end_reaches() {
    let mut report = explained();
    report.bounds[1].low = 4.0;
    let whole = text(&report);
    report.bounds[1].low = 1.0;
    let part = text(&report);
    // Nor is it said to come up to it where nothing is decided.
    report.hierarchy.explanation = Some(verdict(Class::Undecided, "its longest chain takes 4.00"));
    let open = text(&report);
    report.bounds.push(bound("ports", 3.9));
    assert_shown!("bound_with_a_range", beyond(&[whole, part, open, text(&report)]));
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
    // A copy that carries the chain: without it there is another one.
    let copy = WhatIf { cuts: true, ..change("without `mov`", 1.0) };
    // Nothing was gained, so there is nothing to be said of it.
    let longer = WhatIf { cycles: Some(9.0), low: Some(9.0), high: Some(9.0), ..copy.clone() };
    let cases =
        [what_if, vec![copy.clone(), change("without `add`", 3.0)], vec![copy], vec![longer]];
    assert_shown!("change_that_helps", beyond(&cases.map(text)));
}

#[test]
fn a_refuted_bound_comes_last_has_no_bar_and_explains_nothing() {
    let mut report = explained();
    report.bounds.push(Bound { refuted: true, ..bound("ports", 5.0) });
    assert_shown!("refuted_bound", text(&report));
}

#[test]
fn a_violated_assumption_shows_beside_the_answer_unless_it_costs_nothing() {
    let with = |names: &[Assumed]| {
        let assumptions =
            names.iter().map(|n| assumption(*n, Outcome::Violated, "somehow")).collect();
        text(&Measurement { assumptions, ..report() })
    };
    let cases = [with(&[Assumed::LineCrossing, Assumed::Subnormals]), with(&[Assumed::Alignment])];
    assert_shown!("violated_assumptions", cases.join("----\n"));
}

#[test]
fn a_failure_points_at_its_instruction() {
    let text = text(&Measurement {
        status: Status::Failed,
        reason: Some("a division error".into()),
        location: Some(FaultLocation {
            copy: Some(3),
            instruction: Some(1),
            address: Some("0x10".into()),
        }),
        throughput: None,
        ipc: None,
        forms: None,
        assumptions: Vec::new(),
        samples: Samples::default(),
        values: None,
        ..report()
    });
    assert_shown!("failure", text);
}

#[test]
fn an_unstable_block_shows_its_range_and_modes_and_no_single_number() {
    let modes = vec![Mode { cycles: 0.67, share: 0.75 }, Mode { cycles: 0.8, share: 0.25 }];
    let throughput = Throughput { cycles: 0.7, low: 0.67, high: 0.8, modes, clock: "tsc" };
    let text = text(&Measurement {
        status: Status::Unstable,
        reason: Some("passes lie between 0.670 and 0.800 cycles".into()),
        throughput: Some(throughput),
        ..report()
    });
    assert_shown!("unstable", text);
}

#[test]
fn forms_that_disagree_say_by_how_much_and_why_that_matters() {
    let forms = |looped| Some(Forms { unrolled: form(4.0, 192), looped });
    let with = |looped| text(&Measurement { forms: forms(looped), ..report() });
    let none = FormResult {
        cycles: None,
        low: None,
        high: None,
        copies: 0,
        reason: Some("not possible: a flag lives across iterations".into()),
    };
    let why = "unstable: batches lie between 1.000 and 2.000 cycles";
    let unstable = FormResult { reason: Some(why.into()), ..form(5.0, 24) };
    assert_eq!(unstable.trusted(), None);
    let cases = [form(5.0, 1), form(3.0, 1), form(4.1, 1), none, unstable];
    assert_shown!("forms", beyond(&cases.map(with)));
}

#[test]
fn dropped_samples_and_void_passes_come_with_their_reasons() {
    let void =
        vec!["the chains disagree by 5.2 %".to_owned(), "the chains disagree by 6.1 %".to_owned()];
    let text = text(&Measurement {
        samples: Samples { accepted: 64, contended: 9, clock_changed: 0, void },
        ..report()
    });
    assert_shown!("samples_left_out", beyond(&[text]));
}

#[test]
fn registers_that_differ_from_the_rest_are_named() {
    let mut values = Values::default();
    values.registers[2] = 0;
    let text = in_full(&Measurement { values: Some(values), ..report() });
    assert_shown!("values", beyond(&[text]));
}

#[test]
fn counted_nodes_are_shown_as_shares_of_the_slots() {
    let mut hierarchy = Hierarchy::not_measured("not in this group", &level_1());
    hierarchy.nodes[0].share = Some(0.25);
    let miss = Miss { name: "L1D".into(), per_iteration: 0.5, how: "counted".into() };
    let text = text(&Measurement { hierarchy, misses: vec![miss], ..report() });
    assert_shown!("counted_nodes", text);
}

#[test]
fn no_line_is_wider_than_a_page() {
    let long = "a reason of many words ".repeat(20);
    let text = in_full(&Measurement {
        assumptions: vec![assumption(Assumed::LineCrossing, Outcome::Violated, &long)],
        bounds: vec![Bound {
            name: "front-end",
            cycles: 1.0,
            low: 1.0,
            high: 1.0,
            how: long.clone(),
            ..Bound::default()
        }],
        samples: Samples { accepted: 1, contended: 0, clock_changed: 0, void: vec![long.clone()] },
        pages: (0..256).map(|i| format!("{:#x}", 0x7fff_0000_0000_u64 + (i << 12))).collect(),
        values: Some(Values {
            registers: std::array::from_fn(|i| i as u64 + 1),
            ..Values::default()
        }),
        sandbox: vec![long],
        ..report()
    });
    let wide = text.lines().find(|l| l.chars().count() > rows::WIDTH);
    assert_eq!(wide, None);
}

#[test]
fn notes_and_alias_pairs_stand_where_they_belong() {
    let pair = "`mov [rdi],rax` and `mov rcx,[rsi]` meet".to_owned();
    let text = text(&Measurement {
        notes: vec!["without `ret` at its end".to_owned()],
        alias_pairs: vec![pair; 6],
        ..report()
    });
    assert_shown!("notes_and_alias_pairs", text);
}

#[test]
fn a_list_cut_short_by_contention_says_what_to_do_about_it() {
    let with = |reason: &str, disturbed| {
        let (change, reason) = ("without `nop`".to_owned(), Some(reason.to_owned()));
        let what = WhatIf { change, reason, disturbed, ..WhatIf::default() };
        text(&Measurement { what_if: vec![what], ..report() })
    };
    let cases = [
        with("failed: another process occupied the core", true),
        with("no instruction sets its register without reading it", false),
    ];
    assert_shown!("changes_not_measured", beyond(&cases));
}
