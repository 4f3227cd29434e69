//! Findings in a small table with mistakes.

use super::*;
use crate::tables::Table;
use crate::tables::texts::{Text, Texts};

const TEXT: Text =
    Text { meaning: "something", causes: Some("this"), next: Some("that"), same: None };
static TEXTS: &[(&str, Text)] =
    &[("info.IPC", TEXT), ("node.Fetch_Latency", TEXT), ("node.Frontend_Bound", TEXT)];

fn findings(name: &str, text: &str) -> Vec<Finding> {
    super::findings(name, text, Texts::new(TEXTS))
}

const SOUND: &str = r#"
schema = 1
name = "toy"
title = "Toy"
vendor = "any"
pmu = "cpu"
source = ["nobody"]
clocks = "CYCLES"
pipeline = { width = 4 }
counters = { general = 4, general_smt = 4, fixed = 1 }

[[node]]
id = "Frontend_Bound"
level = 1
formula = "BUBBLES / (4 * CYCLES)"
over = "Frontend_Bound > 0.15"
domain = "Slots"
locate = ["BUBBLES"]

[[node]]
id = "Fetch_Latency"
parent = "Frontend_Bound"
level = 2
formula = "BUBBLES:c4 / CYCLES"
over = "Fetch_Latency > 0.1 and Frontend_Bound > 0.15"

[[info]]
id = "IPC"
formula = "INST / CYCLES"
unit = "instructions/cycle"

[events]
CYCLES = { code = 0x3c, fixed = 0 }
INST = { code = 0xc0 }
BUBBLES = { code = 0x9c, umask = 0x01 }
"BUBBLES:c4" = { code = 0x9c, umask = 0x01, cmask = 4 }
"#;

/// Findings after replacing `old` by `new`, as text.
fn after(old: &str, new: &str) -> Vec<String> {
    assert!(SOUND.contains(old), "the sound table has no `{old}`");
    findings("toy", &SOUND.replacen(old, new, 1)).iter().map(ToString::to_string).collect()
}

fn line_of(text: &str) -> usize {
    1 + SOUND[..SOUND.find(text).expect("in the sound table")].matches('\n').count()
}

#[test]
fn a_sound_table_has_no_findings() {
    assert_eq!(findings("toy", SOUND), []);
}

#[test]
fn every_mistake_is_found_with_its_node_and_line() {
    let cases = [
        ("BUBBLES / (4", "BUBBELS / (4", "Frontend_Bound: formula names `BUBBELS`", "did you mean"),
        ("over = \"Frontend_Bound >", "over = \"Frontend >", "threshold names `Frontend`", ""),
        ("locate = [\"BUBBLES\"]", "locate = [\"NONE\"]", "locate names `NONE`", ""),
        (
            "BUBBLES / (4 *",
            "BUBBLES / (4 * *",
            "formula, at character",
            "`BUBBLES / (4 * * CYCLES)`",
        ),
        (
            "parent = \"Frontend_Bound\"",
            "parent = \"Frontend\"",
            "parent `Frontend` does not exist",
            "",
        ),
        ("level = 2", "level = 3", "at level 3 under `Frontend_Bound` at level 1", ""),
        ("level = 1", "level = 2", "at level 2 and without a parent", ""),
        ("domain = \"Slots\"", "domain = \"Slosts\"", "domain `Slosts` is not known", "`Slots`"),
        ("\"instructions/cycle\"", "\"furlongs\"", "unit `furlongs` is not known", ""),
        ("> 0.15\"\ndomain", "> 15\"\ndomain", "the threshold can never hold", "> 15"),
        (
            "and Frontend_Bound > 0.15",
            "and Fetch_Latency < 0.05",
            "the threshold can never hold",
            "",
        ),
        ("id = \"IPC\"", "id = \"INST\"", "another node or event has this name", ""),
        ("INST / CYCLES", "INST / #CYCLES", "constant `#CYCLES`", "SMT_ON"),
        ("INST = { code = 0xc0 }", "INST = { code = 0 }", "INST: a core event without a code", ""),
        ("fixed = 0 }", "fixed = 3 }", "fixed counter 3 of 1", ""),
        ("code = 0xc0 }", "code = 0xc0, counters = [9] }", "counter 9 of 4", ""),
        ("clocks = \"CYCLES\"", "clocks = \"CLK\"", "clocks: `CLK` is not an event", ""),
        ("schema = 1", "schema = 7", "version 7 is not supported", ""),
        ("name = \"toy\"", "name = \"joy\"", "`joy` in a file called `toy`", ""),
        ("vendor = \"any\"", "vendor = \"GenuineIntel\"", "match: no processor matches", "--uarch"),
        ("id = \"IPC\"", "id = \"Nobody_Wrote_About_Me\"", "no text in events/nodes.toml", ""),
    ];
    for (old, new, what, also) in cases {
        let found = after(old, new);
        let hit = found.iter().find(|f| f.contains(what) && f.contains(also));
        assert!(hit.is_some(), "`{new}`: no finding `{what}` in {found:#?}");
    }
}

#[test]
fn several_errors_are_all_reported_in_the_order_of_lines() {
    let text = SOUND.replace("BUBBLES / (4", "X / (4").replace("INST / CYCLES", "Y / CYCLES");
    let found = findings("toy", &text);
    let errors: Vec<_> = found.iter().filter(|f| f.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 2, "{found:#?}");
    assert_eq!(errors[0].line, Some(line_of("id = \"Frontend_Bound\"")));
    assert_eq!(errors[1].line, Some(line_of("id = \"IPC\"")));
}

#[test]
fn cycles_are_found_whole() {
    let found = after("BUBBLES:c4 / CYCLES", "Frontend_Bound - IPC");
    assert!(!found.iter().any(|f| f.contains("is circular")), "{found:#?}");
    let text = SOUND
        .replace("BUBBLES / (4 * CYCLES)", "Fetch_Latency + IPC")
        .replace("BUBBLES:c4 / CYCLES", "2 * Frontend_Bound");
    let found = findings("toy", &text);
    let cycle = found.iter().find(|f| f.what.contains("is circular")).expect("a cycle");
    assert!(cycle.what.contains("Frontend_Bound → Fetch_Latency → Frontend_Bound"), "{cycle}");
}

#[test]
fn notes_tell_of_unused_events_and_shared_encodings() {
    let found = after("INST = {", "INST2 = { code = 0xc0 }\nINST = {");
    assert!(found.iter().any(|f| f.starts_with("note: ") && f.contains("no formula")), "{found:?}");
    assert!(found.iter().any(|f| f.starts_with("note: ") && f.contains("has the encoding of")));
}

#[test]
fn a_file_that_is_no_toml_or_has_an_unknown_key_says_where() {
    let found = after("level = 2", "level = ");
    assert!(found[0].starts_with(&format!("error: line {}: ", line_of("level = 2"))), "{found:?}");
    let found = after("formula = \"INST", "frmula = \"INST");
    assert!(found[0].contains("unknown field `frmula`"), "{found:?}");
    assert!(found[0].contains("line "), "{found:?}");
}

#[test]
fn whatever_is_refused_by_parse_has_an_error_here() {
    for (old, new) in [
        ("BUBBLES / (4", "BUBBELS / (4"),
        ("parent = \"Frontend_Bound\"", "parent = \"Frontend\""),
        ("clocks = \"CYCLES\"", "clocks = \"CLK\""),
        ("id = \"IPC\"", "id = \"INST\""),
        ("BUBBLES:c4 / CYCLES", "Fetch_Latency"),
    ] {
        let text = SOUND.replacen(old, new, 1);
        assert!(Table::parse(&text, "toy").is_err(), "{new}");
        assert!(findings("toy", &text).iter().any(|f| f.severity == Severity::Error), "{new}");
    }
}
