//! Reports made by hand, and what a reader of them needs to see.

use super::*;
use bench::{
    Assumed, Assumption, Bound, FaultLocation, FormResult, Forms, Hierarchy, Line, Miss, Mode,
    Outcome, Samples, Status, Throughput, Values, WhatIf, rejected,
};
use tma::Core;

fn line(offset: &str, bytes: &str, text: &str) -> Line {
    Line { offset: offset.into(), bytes: bytes.into(), text: text.into(), ..Line::default() }
}

fn form(cycles: f64, copies: usize) -> FormResult {
    let range = Some(cycles);
    FormResult { cycles: range, low: range, high: range, copies, reason: None }
}

pub(super) fn level_1() -> Vec<(String, String)> {
    vec![("Frontend_Bound".into(), "Frontend Bound".into()), ("Retiring".into(), "Retiring".into())]
}

fn assumption(name: Assumed, outcome: Outcome, how: &str) -> Assumption {
    Assumption { name, outcome, how: how.into() }
}

pub(super) fn text(report: &Measurement) -> String {
    render(report, &Style { ascii: true, ..Style::default() })
}

fn in_full(report: &Measurement) -> String {
    render(report, &Style { ascii: true, verbose: true, ..Style::default() })
}

/// Two instructions, measured, everything held.
pub(super) fn report() -> Measurement {
    let mut report = rejected("4801d8480fafc3", String::new(), &Core::default());
    report.block.instructions =
        vec![line("0x0", "4801d8", "add rax,rbx"), line("0x3", "480fafc3", "imul rax,rbx")];
    Measurement {
        status: Status::Ok,
        reason: None,
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
        assumptions: vec![assumption(Assumed::L1Data, Outcome::Held, "no memory")],
        hierarchy: Hierarchy::not_measured("no PMU counts here", &level_1()),
        samples: Samples { accepted: 192, contended: 0, clock_changed: 0, void: Vec::new() },
        values: Some(Values::default()),
        ..report
    }
}

#[test]
fn a_clean_report_in_full() {
    let expected = "\
4.000 core cycles per iteration (3.990 to 4.010), 2 instructions, IPC 0.50, clock tsc

evidence: not measured: no PMU counts here

   0    0x0  4801d8    add rax,rbx
   1    0x3  480fafc3  imul rax,rbx

form        cycles      low     high  copies
  unrolled   4.000    4.000    4.000     192
  loop       4.010    4.010    4.010      24

assumptions: all hold (--verbose shows the evidence for each)
";
    assert_eq!(text(&report()), expected);
}

#[test]
fn assumptions_that_hold_are_one_line_and_violated_ones_come_with_their_evidence() {
    let assumptions = vec![
        assumption(Assumed::L1Data, Outcome::Held, "no memory"),
        assumption(Assumed::L1Code, Outcome::Held, "it is short"),
        assumption(Assumed::LineCrossing, Outcome::Violated, "instruction 1"),
    ];
    let report = Measurement { assumptions, ..report() };
    let section = |text: &str| {
        let lines = text.lines().skip_while(|l| !l.starts_with("assumptions: ")).skip(1);
        lines.take_while(|l| !l.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(text(&report).contains("assumptions: 2 of 3 hold"), "{}", text(&report));
    assert_eq!(section(&text(&report)), ["  line-crossing    VIOLATED: instruction 1"]);
    let full = section(&in_full(&report));
    let expected = [
        "  line-crossing    VIOLATED: instruction 1",
        "  l1-data          holds: no memory",
        "  l1-code          holds: it is short",
    ];
    assert_eq!(full, expected);
}

#[test]
fn a_violated_assumption_shows_beside_the_answer_unless_it_costs_nothing() {
    let with = |names: &[Assumed]| {
        let assumptions =
            names.iter().map(|n| assumption(*n, Outcome::Violated, "somehow")).collect();
        text(&Measurement { assumptions, ..report() })
    };
    let two = with(&[Assumed::LineCrossing, Assumed::Subnormals]);
    let line = two.lines().nth(1);
    assert_eq!(line, Some("  violated assumptions: line-crossing, subnormals"), "{two}");
    assert!(two.contains("  line-crossing    VIOLATED: somehow\n"), "{two}");
    let unaligned = with(&[Assumed::Alignment]);
    assert!(!unaligned.contains("violated assumptions:"), "{unaligned}");
    assert!(unaligned.contains("VIOLATED"), "{unaligned}");
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
    let expected = "\
failed: a division error
  at instruction 1, copy 3, address 0x10 (counted from 0)

   0    0x0  4801d8    add rax,rbx
>  1    0x3  480fafc3  imul rax,rbx
";
    assert_eq!(text, expected);
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
    assert!(text.contains("  try: --thorough "), "{text}");
    let head: Vec<_> = text.lines().take(2).collect();
    assert_eq!(
        head,
        [
            "unstable: passes lie between 0.670 and 0.800 cycles",
            "  between 0.670 and 0.800 core cycles per iteration, in modes: 0.670 (75 %), 0.800 (25 %), \
             clock tsc"
        ]
    );
}

#[test]
fn forms_that_disagree_say_by_how_much_and_why_that_matters() {
    let forms = |looped| Some(Forms { unrolled: form(4.0, 192), looped });
    let slower = text(&Measurement { forms: forms(form(5.0, 1)), ..report() });
    assert!(slower.contains("The loop takes +25.0 % against the unrolled form."), "{slower}");
    let faster = text(&Measurement { forms: forms(form(3.0, 1)), ..report() });
    assert!(faster.contains("-25.0 %") && faster.contains("op cache"), "{faster}");
    let equal = text(&Measurement { forms: forms(form(4.1, 1)), ..report() });
    assert!(!equal.contains("against"), "{equal}");
    let none = FormResult {
        cycles: None,
        low: None,
        high: None,
        copies: 0,
        reason: Some("not possible: a flag lives across iterations".into()),
    };
    let text = text(&Measurement { forms: forms(none), ..report() });
    assert!(text.contains("  loop     not possible: a flag lives"), "{text}");
}

#[test]
fn dropped_samples_and_void_passes_come_with_their_reasons() {
    let void =
        vec!["the chains disagree by 5.2 %".to_owned(), "the chains disagree by 6.1 %".to_owned()];
    let text = text(&Measurement {
        samples: Samples { accepted: 64, contended: 9, clock_changed: 0, void },
        ..report()
    });
    assert!(
        text.contains("samples  64 rounds used, 9 dropped: contention on the core\n"),
        "{text}"
    );
    assert!(
        text.contains("         2 passes discarded: for example the chains disagree by 5.2 %\n"),
        "{text}"
    );
}

#[test]
fn registers_that_differ_from_the_rest_are_named() {
    let mut values = Values::default();
    values.registers[2] = 0;
    let text = in_full(&Measurement { values: Some(values), ..report() });
    assert!(text.contains("values   rdx 0x0, other registers 0x12345600; memory"), "{text}");
}

#[test]
fn counted_nodes_are_shown_as_shares_of_the_slots() {
    let mut hierarchy = Hierarchy::not_measured("not in this group", &level_1());
    hierarchy.nodes[0].share = Some(0.25);
    let miss = Miss { name: "L1D".into(), per_iteration: 0.5, how: "counted".into() };
    let text = text(&Measurement { hierarchy, misses: vec![miss], ..report() });
    assert!(text.contains("top-down\n  Frontend Bound              25.0 % of slots\n"), "{text}");
    assert!(
        text.contains("  Retiring                    not measured: not in this group\n"),
        "{text}"
    );
    assert!(text.contains("0.5000; counted"), "{text}");
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
fn a_form_that_did_not_reproduce_says_so_and_is_compared_with_nothing() {
    let mut report = report();
    let forms = report.forms.as_mut().expect("forms");
    let why = "unstable: batches lie between 1.000 and 2.000 cycles";
    forms.looped.reason = Some(why.to_owned());
    assert_eq!(forms.looped.trusted(), None);
    let text = text(&report);
    assert!(text.contains(why), "{text}");
    assert!(!text.contains("The loop takes"), "{text}");
}

#[test]
fn notes_and_alias_pairs_stand_where_they_belong() {
    let pair = "`mov [rdi],rax` and `mov rcx,[rsi]` meet".to_owned();
    let text = text(&Measurement {
        notes: vec!["without `ret` at its end".to_owned()],
        alias_pairs: vec![pair; 6],
        ..report()
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "note: without `ret` at its end");
    let place = lines.iter().position(|l| l.starts_with("assumptions: ")).unwrap();
    assert!(lines[place + 1].starts_with("  note: `mov [rdi],rax`"), "{text}");
    assert!(lines[place + 5].contains("2 more pairs"), "{text}");
}

#[test]
fn a_list_cut_short_by_contention_says_what_to_do_about_it() {
    let with = |reason: &str, disturbed| {
        let (change, reason) = ("without `nop`".to_owned(), Some(reason.to_owned()));
        let what = WhatIf { change, reason, disturbed, ..WhatIf::default() };
        text(&Measurement { what_if: vec![what], ..report() })
    };
    let text = with("failed: another process occupied the core", true);
    assert!(text.contains("  try: --thorough "), "{text}");
    assert!(!with("no instruction sets its register without reading it", false).contains("try:"));
}
