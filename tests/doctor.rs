//! `tdtool doctor` as a person meets it: what is possible in a line each, and what to do about the rest.

use crate::support::files::Folder;
use crate::support::run::{command, run, tdtool};

/// The lines about capabilities: each with the lines below it.
fn capabilities(text: &str) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        let begins = ["yes ", "blocked ", "limited "].iter().any(|mark| line.starts_with(mark));
        match all.last_mut() {
            _ if begins => all.push(vec![line]),
            Some(last) if line.starts_with("     ") => last.push(line),
            _ => {}
        }
    }
    all
}

#[test]
fn each_capability_is_a_line_and_what_is_limited_has_a_remedy() {
    let text = tdtool(["doctor"]).succeeded().stdout;
    let all = capabilities(&text);
    assert!(all.len() >= 8, "{text}");
    for lines in all {
        match lines[0].starts_with("yes ") {
            true => assert_eq!(lines.len(), 1, "{lines:?}"),
            false => {
                assert!(lines.len() == 2 && lines[1].trim_start().starts_with("try:"), "{lines:?}")
            }
        }
    }
    // A line of a terminal, or two; evidence has no limit.
    assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
}

#[test]
fn causes_and_evidence_are_there_for_who_asks() {
    let (short, long) = (tdtool(["doctor"]).succeeded(), tdtool(["doctor", "-v"]).succeeded());
    assert!(short.stdout.contains("-v"), "{}", short.stdout);
    assert!(long.stdout.lines().count() > short.stdout.lines().count(), "{}", long.stdout);
    assert!(long.stdout.contains("         - "), "{}", long.stdout);
    let document = tdtool(["doctor", "--format", "json"]).succeeded().json();
    let findings = document["findings"].as_array().expect("findings");
    assert!(findings.iter().any(|one| one["evidence"].is_array()), "{document}");
}

#[test]
fn the_cpus_of_the_only_kind_of_core_are_named() {
    need!(cfg!(target_arch = "x86_64"), "kinds of core are those of CPUID");
    let document = tdtool(["doctor", "--format", "json"]).succeeded().json();
    let of = |core: &serde_json::Value| core["cpus"].as_array().map_or(0, Vec::len);
    let cores = document["identity"]["cores"].as_array().expect("kinds of core");
    let named: usize = cores.iter().map(of).sum();
    assert_eq!(Some(named as u64), document["cpus"].as_u64(), "{document}");
}

#[test]
fn a_bad_name_of_a_table_is_refused_before_anything_is_measured() {
    let refused = tdtool(["doctor", "--toml", "a b"]);
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.starts_with("error: `a b`"), "{refused:?}");
}

/// What `doctor --toml` writes for a Zen 4, without its comments.
const MEASURED: &str = r#"
schema = 1
name = "mine"
title = "A processor"
vendor = "any"
pmu = "cpu"
source = ["measured on A processor"]
clocks = "CYCLES"
match = []
pipeline = { width = 6, reorder_buffer = 320, source = "measured on A processor" }
counters = { general = 4, general_smt = 4, fixed = 0 }

[facts]
op_cache = { ops = 4096, source = "measured on A processor" }

[[info]]
id = "Cycles"
label = "Cycles"
formula = "CYCLES"
unit = ""

[events]
"CYCLES" = { code = 0x76 }
"#;

#[test]
fn a_table_of_measurements_is_said_to_hide_the_built_in_one() {
    let tables = Folder::new();
    tables.write("mine.toml", MEASURED);
    let folder = tables.file("");
    let mut doctor =
        command(["doctor", "--uarch", "mine", "--tables", &folder, "--format", "json"]);
    let document = run(&mut doctor).succeeded().json();
    let of_table = document["findings"].as_array().expect("findings").iter();
    let table = of_table.filter(|one| one["id"] == "table").collect::<Vec<_>>();
    let built_in = tdtool(["tables", "identify", "--format", "json"]).json();
    need!(built_in["table"].is_string(), "no built-in table describes this processor");
    let said = table[0]["what"].as_str().expect("a text");
    assert!(said.contains("measurements"), "{said}");
    assert!(table[0]["remedy"].as_str().is_some_and(|text| text.contains("--uarch")), "{table:?}");
}
