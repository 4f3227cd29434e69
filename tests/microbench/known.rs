//! Latency and throughput of instructions, as published of the processor at hand.

use super::microbench;
use crate::block::quiet_sandbox;
use crate::support::processor::{Core, core};
use crate::support::trial::{Trial, assert_holds, claim};
use serde_json::Value;

const MULTIPLICATION: &str = "IMUL_GPR64i64_GPR64i64";

/// Multiplications of 64 bits that a core starts in a cycle: one on all of Intel's up to Golden
/// Cove and on Zen to Zen 4 (uops.info), three on Zen 5 (AMD's Software Optimization Guide for Zen
/// 5, 58455: three of its ALUs multiply). Of others nothing is known here.
fn multiplications_a_cycle() -> Option<f64> {
    match core()? {
        Core::Zen(5) => Some(3.0),
        Core::Zen(_) | Core::Skylake | Core::SunnyCove | Core::GoldenCove => Some(1.0),
    }
}

/// Measures until the document is one that the tool vouches for, and as `judge` has it.
fn assert_measured(arguments: &[&str], judge: impl Fn(&Value) -> Result<(), String>) -> bool {
    let all = [arguments, &["--format", "json"]].concat();
    assert_holds(&arguments.join(" "), || {
        let document = microbench(&all).json();
        let ok = |measured: &Value| measured["status"] == "ok";
        let settled = match document["latencies"].as_array() {
            Some(latencies) => latencies.iter().all(ok),
            None => ok(&document),
        };
        if settled { judge(&document).into() } else { Trial::Unsettled("contention".into()) }
    })
}

/// The throughput is `expected`.
fn assert_throughput(form: &str, expected: f64) -> bool {
    assert_measured(&["throughput", form], |document| {
        let cycles = document["cycles"]["cycles"].as_f64().unwrap();
        claim(is_near(cycles, expected), || format!("{cycles} for {expected}"))
    })
}

/// The latency from each operand to each result is `expected`.
fn assert_latencies(form: &str, expected: f64) {
    assert_measured(&["latency", form], |document| {
        for way in document["latencies"].as_array().unwrap() {
            let cycles = way["cycles"].as_f64().unwrap();
            claim(is_near(cycles, expected), || format!("{way} for {expected}"))?;
        }
        Ok(())
    });
}

fn is_near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.05
}

/// Three cycles on every x86 core of Intel since Nehalem and of AMD since Zen (uops.info).
#[test]
fn multiplication_takes_three_cycles_and_starts_as_often_as_published() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let uncontended = match multiplications_a_cycle() {
        Some(starts) => assert_throughput(MULTIPLICATION, 1.0 / starts),
        None => {
            eprintln!("skipped: throughput: not known of this processor");
            true
        }
    };
    // Contended, latencies would take minutes.
    if uncontended {
        assert_latencies(MULTIPLICATION, 3.0);
    }
}

/// FMA: four cycles on Intel since Skylake and on AMD since Zen 3 (uops.info); two a cycle.
#[test]
fn fused_multiply_add_takes_four_cycles_and_two_start_each() {
    need!(std::is_x86_feature_detected!("fma"), "no FMA here");
    let Some(_quiet) = quiet_sandbox() else { return };
    let form = "VFMADD231PD_VR256f64x4_VR256f64x4_VR256f64x4";
    if assert_throughput(form, 0.5) {
        assert_latencies(form, 4.0);
    }
}

/// Where one multiplication starts in a cycle, two additions find room beside it on any core. Where
/// several do, the whole takes as long as they need, or longer, and less than a cycle.
#[test]
fn a_mixed_multiset_is_counted_whole() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let set = format!("{MULTIPLICATION}, ADD_GPR64i64_GPR64i64*2");
    assert_measured(&[&set], |document| {
        assert_eq!(document["instructions"], 3);
        let cycles = document["cycles"]["cycles"].as_f64().unwrap();
        let ipc = document["ipc"].as_f64().unwrap();
        assert!(is_near(ipc * cycles, 3.0), "{document}");
        let holds = match multiplications_a_cycle() {
            Some(1.0) => is_near(cycles, 1.0),
            Some(starts) => cycles > 0.95 / starts && cycles < 1.0,
            None => cycles < 1.05,
        };
        claim(holds, || document["cycles"].to_string())
    });
}
