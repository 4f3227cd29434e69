//! The PMU in the block profiler's document: a clock where there is one, else the reason, and status 3 for those
//! who insist. Counts themselves are tested on scripted counters (`src/bench/counting`) and on a simulated PMU
//! (tests/simpmu).

use super::{block, sandbox};
use pmu::machine::Machine;
use serde_json::Value;

fn has_pmu() -> bool {
    Machine::detect().core_pmus().next().is_some()
}

fn document(arguments: &[&str]) -> Value {
    let options = ["--format", "json", "--budget", "200", "--no-loop"];
    block([arguments, &options].concat()).json()
}

#[test]
fn without_a_pmu_only_those_who_require_one_fail_and_the_reason_is_reported() {
    need!(!has_pmu(), "there is a PMU");
    let Some(_busy) = sandbox() else { return };
    for insist in [&["--require-pmu"][..], &["--clock", "pmu"]] {
        let output = block([insist, &["4801d8"]].concat());
        let said = &output.stderr;
        assert_eq!(output.code(), Some(3), "{said}");
        assert!(said.contains("cause:") && said.contains("try:"), "{said}");
        assert!(output.stdout.is_empty());
    }
    let report = document(&["4801d8"]);
    // What explains the block is found from its variants; shares of slots are counted or absent.
    let nodes = report["hierarchy"]["nodes"].as_array().unwrap();
    assert!(nodes.len() >= 4, "level 1 of the tree is listed: {nodes:?}");
    for node in nodes {
        assert!(node["share"].is_null() && node["reason"].is_string(), "{node}");
    }
    assert!(report["misses"].as_array().unwrap().is_empty());
    assert_ne!(report["throughput"]["clock"], "pmu");
}

#[test]
fn with_a_pmu_it_is_the_clock_unless_another_is_asked_for() {
    need!(has_pmu(), "there is no PMU");
    let Some(_busy) = sandbox() else { return };
    let report = document(&["4801d8"]);
    let verdict = report["hierarchy"]["verdict"].as_str().unwrap();
    let refused = verdict.contains("does not count the worker");
    if let Some(clock) = report["throughput"]["clock"].as_str() {
        assert_eq!(clock, if refused { "tsc" } else { "pmu" }, "{verdict}");
    }
    let report = document(&["4801d8", "--clock", "tsc", "--no-counts"]);
    assert_ne!(report["throughput"]["clock"], "pmu");
    assert_eq!(report["hierarchy"]["verdict"], "not measured: not requested");
}

#[test]
fn page_faults_are_counted_without_a_pmu() {
    let Some(_busy) = sandbox() else { return };
    // `mov rax,[rax]`: its page is found before anything is timed. The kernel may still unmap a
    // page for reasons of its own, but not every time.
    let mut faults = Vec::new();
    for _ in 0..3 {
        let report = document(&["488b00", "--clock", "tsc"]);
        let all = report["assumptions"].as_array().unwrap();
        match all.iter().find(|i| i["name"] == "page-faults") {
            Some(found) => faults.push(found["verdict"].as_str().unwrap().to_owned()),
            None => {
                eprintln!("skipped: no software events here");
                return;
            }
        }
    }
    assert!(faults.iter().any(|verdict| verdict == "held"), "{faults:?}");
}

#[test]
fn without_the_sentinel_contention_is_unchecked() {
    let Some(_busy) = sandbox() else { return };
    let report = document(&["4801d8", "--no-sentinel"]);
    let all = report["assumptions"].as_array().unwrap();
    let contention = all.iter().find(|i| i["name"] == "contention").unwrap();
    assert_eq!(contention["verdict"], "unchecked", "{contention}");
}
