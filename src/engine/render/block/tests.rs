//! Reports made by hand, and what a reader of them needs to see.

use super::*;
use bench::{
    Assumption, Bound, Code, FaultLocation, FormResult, Forms, Hierarchy, Line, Miss, Mode,
    Outcome, SCHEMA, Samples, Throughput, Values, WhatIf,
};

fn line(offset: &str, bytes: &str, text: &str) -> Line {
    Line { offset: offset.into(), bytes: bytes.into(), text: text.into() }
}

fn form(cycles: f64, copies: usize) -> FormResult {
    let range = Some(cycles);
    FormResult { cycles: range, low: range, high: range, copies, reason: None }
}

fn level_1() -> Vec<(String, String)> {
    vec![("Frontend_Bound".into(), "Frontend Bound".into()), ("Retiring".into(), "Retiring".into())]
}

fn invariant(name: &'static str, outcome: Outcome, how: &str) -> Assumption {
    Assumption { name, outcome, how: how.into() }
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
        notes: Vec::new(),
        assumptions: vec![invariant("l1-data", Outcome::Held, "no memory")],
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
    let expected = "\
ok: 4.000 cycles per iteration (3.990 to 4.010), 2 instructions, IPC 0.50, clock tsc

   0    0x0  4801d8    add rax,rbx
   1    0x3  480fafc3  imul rax,rbx

form        cycles      low     high  copies
  unrolled   4.000    4.000    4.000     192
  loop       4.010    4.010    4.010      24

samples  192 kept
values   registers 0x12345600; memory 0x12345600; vectors 0x3f8000003f800000
pages    0

assumptions
  held: l1-data (--verbose tells how each is known)

top-down: not measured: no PMU counts here
";
    assert_eq!(render(&report()), expected);
}

#[test]
fn assumptions_that_held_are_names_and_violated_ones_come_first() {
    let assumptions = vec![
        invariant("l1-data", Outcome::Held, "no memory"),
        invariant("l1-code", Outcome::Held, "it is short"),
        invariant("line-crossing", Outcome::Violated, "instruction 1"),
    ];
    let report = Measurement { assumptions, ..report() };
    let section = |text: &str| {
        let lines = text.lines().skip_while(|l| *l != "assumptions").skip(1);
        lines.take_while(|l| !l.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = [
        "  line-crossing    VIOLATED: instruction 1",
        "  held: l1-data, l1-code (--verbose tells how each is known)",
    ];
    assert_eq!(section(&render(&report)), expected);
    let full = section(&render_in_full(&report));
    assert_eq!(full[0], expected[0]);
    assert_eq!(
        full[1..],
        ["  l1-data          held: no memory", "  l1-code          held: it is short"]
    );
}

#[test]
fn a_bound_is_never_said_to_be_more_than_the_whole() {
    let bound = |cycles: f64| {
        let how = "measured".to_owned();
        let bound =
            Bound { name: "front-end", cycles, low: cycles, high: cycles, how, refuted: false };
        render(&Measurement { bounds: vec![bound], ..report() })
    };
    let at = bound(4.16);
    assert!(at.contains("4.160 cycles, at the throughput, within error; measured"), "{at}");
    assert!(bound(2.0).contains("50 % of the throughput"), "{}", bound(2.0));
    let how = "measured".to_owned();
    let above = Bound { name: "ports", cycles: 5.0, low: 5.0, high: 5.0, how, refuted: true };
    let text = render(&Measurement { bounds: vec![above], ..report() });
    assert!(text.contains("125 % of the throughput: above the measurement, refuted"), "{text}");
}

#[test]
fn a_violated_assumption_shows_in_the_headline_unless_it_costs_nothing() {
    let with = |names: &[&'static str]| {
        let assumptions =
            names.iter().map(|n| invariant(n, Outcome::Violated, "somehow")).collect();
        render(&Measurement { assumptions, ..report() })
    };
    let one = with(&["line-crossing"]);
    assert!(
        one.starts_with("ok, with 1 assumption violated: line-crossing\n  4.000 cycles"),
        "{one}"
    );
    assert!(one.contains("  line-crossing    VIOLATED: somehow\n"), "{one}");
    let two = with(&["line-crossing", "subnormals"]);
    assert!(
        two.starts_with("ok, with 2 assumptions violated: line-crossing, subnormals\n"),
        "{two}"
    );
    let unaligned = with(&["alignment"]);
    assert!(unaligned.starts_with("ok: 4.000 cycles"), "{unaligned}");
    assert!(unaligned.contains("VIOLATED"), "{unaligned}");
}

#[test]
fn a_failure_points_at_its_instruction() {
    let text = render(&Measurement {
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
fn what_is_unstable_tells_its_range_and_modes_and_no_single_number() {
    let modes = vec![Mode { cycles: 0.67, share: 0.75 }, Mode { cycles: 0.8, share: 0.25 }];
    let throughput = Throughput { cycles: 0.7, low: 0.67, high: 0.8, modes, clock: "tsc" };
    let text = render(&Measurement {
        status: Status::Unstable,
        reason: Some("passes lie between 0.670 and 0.800 cycles".into()),
        throughput: Some(throughput),
        ..report()
    });
    assert!(text.contains("  try: --budget "), "{text}");
    let head: Vec<_> = text.lines().take(2).collect();
    assert_eq!(
        head,
        [
            "unstable: passes lie between 0.670 and 0.800 cycles",
            "  between 0.670 and 0.800 cycles per iteration, in modes: 0.670 (75 %), 0.800 (25 %), \
             clock tsc"
        ]
    );
}

#[test]
fn forms_that_disagree_say_by_how_much_and_why_that_matters() {
    let forms = |looped| Some(Forms { unrolled: form(4.0, 192), looped });
    let slower = render(&Measurement { forms: forms(form(5.0, 1)), ..report() });
    assert!(slower.contains("The loop takes +25.0 % against the unrolled form."), "{slower}");
    let faster = render(&Measurement { forms: forms(form(3.0, 1)), ..report() });
    assert!(faster.contains("-25.0 %") && faster.contains("op cache"), "{faster}");
    let equal = render(&Measurement { forms: forms(form(4.1, 1)), ..report() });
    assert!(!equal.contains("against"), "{equal}");
    let none = FormResult {
        cycles: None,
        low: None,
        high: None,
        copies: 0,
        reason: Some("not possible: a flag lives across iterations".into()),
    };
    let text = render(&Measurement { forms: forms(none), ..report() });
    assert!(text.contains("  loop     not possible: a flag lives"), "{text}");
}

#[test]
fn dropped_samples_and_void_passes_come_with_their_reasons() {
    let void = vec!["the clock changed".to_owned(); 2];
    let text = render(&Measurement {
        samples: Samples { accepted: 64, contended: 9, clock_changed: 0, void },
        ..report()
    });
    assert!(text.contains("samples  64 kept, 9 dropped: something else used the core\n"), "{text}");
    assert!(text.contains("         2 passes void: the clock changed\n"), "{text}");
}

#[test]
fn registers_that_differ_from_the_rest_are_named() {
    let mut values = Values::default();
    values.registers[2] = 0;
    let text = render(&Measurement { values: Some(values), ..report() });
    assert!(text.contains("values   rdx 0x0, other registers 0x12345600; memory"), "{text}");
}

#[test]
fn bounds_and_measured_nodes_are_shown_with_what_they_are_of() {
    let bound = Bound {
        name: "front-end",
        cycles: 1.0,
        low: 0.99,
        high: 1.01,
        how: "measured".into(),
        refuted: false,
    };
    let mut hierarchy = Hierarchy::not_measured("not in this group", &level_1());
    hierarchy.verdict = "latency".into();
    hierarchy.nodes[0].share = Some(0.25);
    let miss = Miss { name: "L1D".into(), per_iteration: 0.5, how: "counted".into() };
    let text =
        render(&Measurement { bounds: vec![bound], hierarchy, misses: vec![miss], ..report() });
    let bound =
        "  front-end        1.000 cycles (0.990 to 1.010), 25 % of the throughput; measured\n";
    assert!(text.contains(bound), "{text}");
    assert!(
        text.contains("top-down: latency\n  Frontend Bound              25.0 % of slots\n"),
        "{text}"
    );
    assert!(
        text.contains("  Retiring                    not measured: not in this group\n"),
        "{text}"
    );
    assert!(text.contains("0.5000; counted"), "{text}");
}

#[test]
fn no_line_is_wider_than_a_page() {
    let long = "a reason of many words ".repeat(20);
    let text = render(&Measurement {
        assumptions: vec![invariant("line-crossing", Outcome::Violated, &long)],
        bounds: vec![Bound {
            name: "front-end",
            cycles: 1.0,
            low: 1.0,
            high: 1.0,
            how: long.clone(),
            refuted: false,
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
    let wide = text.lines().find(|l| l.chars().count() > layout::WIDTH);
    assert_eq!(wide, None);
}

#[test]
fn a_form_that_did_not_reproduce_says_so_and_is_compared_with_nothing() {
    let mut report = report();
    let forms = report.forms.as_mut().expect("forms");
    let why = "unstable: batches lie between 1.000 and 2.000 cycles";
    forms.looped.reason = Some(why.to_owned());
    assert_eq!(forms.looped.trusted(), None);
    let text = render(&report);
    assert!(text.contains(why), "{text}");
    assert!(!text.contains("The loop takes"), "{text}");
}

#[test]
fn where_a_block_comes_from_and_which_accesses_meet_by_chance_is_said_in_its_place() {
    let meeting = "`mov [rdi],rax` and `mov rcx,[rsi]` meet".to_owned();
    let text = render(&Measurement {
        notes: vec!["without `ret` at its end".to_owned()],
        alias_pairs: vec![meeting; 6],
        ..report()
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "note: without `ret` at its end");
    let place = lines.iter().position(|l| l.starts_with("  held: ")).unwrap();
    assert!(lines[place + 1].starts_with("  note: `mov [rdi],rax`"), "{text}");
    assert!(lines[place + 5].contains("2 pairs more"), "{text}");
}

#[test]
fn a_list_cut_short_by_neighbours_says_what_to_do_about_it() {
    let what = |reason: &str| WhatIf {
        change: "without `nop`".to_owned(),
        cycles: None,
        low: None,
        high: None,
        reason: Some(reason.to_owned()),
    };
    let with = |reason| render(&Measurement { what_if: vec![what(reason)], ..report() });
    let text = with("failed: another process took the core");
    assert!(text.contains("  try: --budget"), "{text}");
    assert!(!with("no instruction sets its register without reading it").contains("try:"));
}
