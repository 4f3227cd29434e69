//! What the block profiler says of the PMU: a clock where there is one, else the reason and status 3
//! for those who insist. Counts themselves are tested on scripted counters (`src/block/pmu`) and on
//! a simulated PMU (tests/simpmu).
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use pmu::machine::Machine;
use std::process::{Command, Output};

fn tool(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tdtool")).arg("block").args(args).output().unwrap()
}

fn has_pmu() -> bool {
    Machine::detect().core_pmus().next().is_some()
}

fn document(args: &[&str]) -> Option<serde_json::Value> {
    let output = tool(&[args, &["--format", "json", "--budget", "500", "--no-loop"]].concat());
    if output.status.code() == Some(3) {
        eprintln!("skipped: no sandbox here: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn without_a_pmu_only_those_who_insist_fail_and_the_reason_is_told() {
    if has_pmu() {
        eprintln!("skipped: there is a PMU");
        return;
    }
    for insist in [&["--require-pmu"][..], &["--clock", "pmu"]] {
        let output = tool(&[insist, &["4801d8"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("cause:") && said.contains("try:"), "{said}");
        assert!(output.stdout.is_empty());
    }
    let Some(report) = document(&["4801d8"]) else { return };
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
    if !has_pmu() {
        eprintln!("skipped: there is no PMU");
        return;
    }
    let Some(report) = document(&["4801d8"]) else { return };
    let verdict = report["hierarchy"]["verdict"].as_str().unwrap();
    let refused = verdict.contains("does not count the worker");
    if let Some(clock) = report["throughput"]["clock"].as_str() {
        assert_eq!(clock, if refused { "tsc" } else { "pmu" }, "{verdict}");
    }
    let Some(report) = document(&["4801d8", "--clock", "tsc", "--no-counts"]) else { return };
    assert_ne!(report["throughput"]["clock"], "pmu");
    assert_eq!(report["hierarchy"]["verdict"], "not measured: not asked for");
}

#[test]
fn what_any_kernel_counts_is_known_without_a_pmu() {
    // `mov rax,[rax]`: its page is found before anything is timed. The kernel may still unmap a page
    // for reasons of its own, but not every time.
    let mut faults = Vec::new();
    for _ in 0..3 {
        let Some(report) = document(&["488b00", "--clock", "tsc"]) else { return };
        let all = report["invariants"].as_array().unwrap();
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
fn nobody_claims_a_calm_core_who_did_not_look() {
    let Some(report) = document(&["4801d8", "--no-sentinel"]) else { return };
    let all = report["invariants"].as_array().unwrap();
    let neighbour = all.iter().find(|i| i["name"] == "neighbour").unwrap();
    assert_eq!(neighbour["verdict"], "unchecked", "{neighbour}");
}
