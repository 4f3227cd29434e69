//! The estimated tree: its document, and that it is never taken for a counted one.

use super::report;
use crate::support::quiet::busy;
use crate::support::run::tdtool;
use serde_json::Value;

const PARTS: [&str; 7] = [
    "retiring",
    "bad_speculation",
    "fetch_bandwidth",
    "fetch_latency",
    "core_bound",
    "memory_bound",
    "unexplained",
];

/// Values within their intervals, which sum to 1; the largest one that is named, or `undecided`.
fn is_sound(row: &Value) {
    let part = |name: &str, key: &str| row["parts"][name][key].as_f64().expect("a number");
    let sum: f64 = PARTS.iter().map(|name| part(name, "value")).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{row:#}");
    for name in PARTS {
        let [low, value, high] = ["low", "value", "high"].map(|key| part(name, key));
        assert!(0.0 <= low && low <= value && value <= high && high <= 1.0, "{row:#}");
        assert!(row["parts"][name]["source"].is_string(), "{row:#}");
    }
    let found = row["bottleneck"].as_str().expect("a bottleneck");
    if found != "undecided" {
        let largest = PARTS.iter().all(|name| part(name, "value") <= part(found, "value"));
        assert!(largest && found != "unexplained", "{row:#}");
    }
}

#[test]
fn the_parts_of_every_row_sum_to_the_whole() {
    let _busy = busy();
    let program = env!("CARGO_BIN_EXE_tdtool");
    let command = [program, "workload", "run", "dependent-adds", "--repeats", "300"];
    let ran = report(&[&["--estimate", "--format", "json", "--"][..], &command].concat());
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    let estimate = &document["estimate"];
    let is_covered = estimate["covered"].as_f64().is_some_and(|share| share > 0.5);
    need!(is_covered, format!("too few samples: {estimate:#}"));
    for kind in ["functions", "loops", "blocks"] {
        let rows = estimate[kind].as_array().expect("rows");
        assert!(!rows.is_empty(), "{kind}: {estimate:#}");
        rows.iter().for_each(is_sound);
    }
    is_sound(&estimate["program"]);
    let runs = estimate["runs"].as_array().expect("runs");
    assert_eq!(runs[0]["run"], "samples");
    assert!(runs.iter().any(|run| run["run"] == "counts"), "{runs:#?}");
    // No counted node has a value because of it.
    let nodes = document["nodes"].as_array().expect("nodes");
    if document["source"] == "no_pmu" {
        assert!(nodes.iter().all(|node| node["value"].is_null()), "{nodes:#?}");
    }
}

#[test]
fn an_estimate_needs_a_command_and_is_no_pmu() {
    let ran = tdtool(["report", "--estimate", "-p", "1"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--estimate needs a command"), "{}", ran.stderr);
    let ran = tdtool(["report", "--estimate", "--require-pmu", "--", "true"]);
    need!(ran.code() != Some(0), "this machine has a PMU");
    assert_eq!(ran.code(), Some(3), "{}", ran.stderr);
}

#[test]
fn what_an_estimate_costs_is_said_where_there_is_no_tree() {
    let _busy = busy();
    let program = env!("CARGO_BIN_EXE_tdtool");
    let command = ["--", program, "workload", "run", "dependent-adds", "--seconds", "0.2"];
    let ran = report(&[&["--format", "json"][..], &command].concat());
    need!(ran.code() == Some(0), ran.stderr);
    let document = ran.json();
    need!(document["source"] == "no_pmu", "this machine has a PMU");
    let notes = document["notes"].to_string();
    assert!(notes.contains("tdtool report --estimate -- COMMAND"), "{notes}");
    assert!(document.get("estimate").is_none());
}
