//! The bounds of a block: none above its time, each what can be said by hand.

use super::explained::{assert_explained, bound, cycles, decided, time};
use super::quiet_sandbox;
use crate::support::processor::{Core, core};
use crate::support::trial::claim;
use serde_json::Value;

/// A multiplication takes 3 cycles on every x86-64 core since Nehalem and Zen (uops.info). The
/// latency tables of Golden Cove and Zen 3 say so; without a table the tool has a range, which holds
/// it.
#[test]
fn bounds_are_those_of_the_block_and_not_above_its_time() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let block = "imul rax,rax; add rcx,rdx; add rsi,rdx";
    assert_explained(block, &[], decided, |document| {
        let time = time(document);
        for name in ["ports", "slots", "front-end"] {
            let least = cycles(document, name).unwrap_or(0.0);
            claim(least <= 1.1 * time, || format!("{name}: {least} of {time}"))?;
        }
        let chain = bound(document, "dependency").expect("a chain");
        let [low, best, high] = ["low", "cycles", "high"].map(|key| chain[key].as_f64().unwrap());
        assert!(low <= 3.0 && 3.0 <= high && low <= best && best <= high, "{chain}");
        let has_table = matches!(core(), Some(Core::GoldenCove | Core::Zen(3)));
        assert!(!has_table || (best - 3.0).abs() < 0.05, "{chain}");
        claim(low <= 1.1 * time, || format!("{chain} of {time}"))
    });
}

#[test]
fn push_and_pop_have_a_bound_of_the_ports() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let good = |d: &Value| decided(d) && bound(d, "ports").is_some();
    let block = "push rax; push rcx; pop rdx; pop rsi";
    assert_explained(block, &[], good, |document| {
        let time = time(document);
        // Two stores and two loads: a cycle of the store ports of any core, and no chain.
        let ports = cycles(document, "ports").unwrap();
        claim(ports > 0.3 && ports < 1.1 * time, || format!("{ports} of {time}"))
    });
}

/// By hand: two ports shift and rotate on every Intel core since Haswell, four on Zen (uops.info),
/// so four rotates take 2 cycles or 1. By 1 a rotate is another instruction and takes longer on
/// some.
#[test]
fn a_block_keeps_its_immediates_where_its_ports_are_measured() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let block = "rol rax,13; rol rbx,13; rol rcx,13; rol rdx,13";
    assert_explained(
        block,
        &[],
        |d| bound(d, "ports").is_some(),
        |document| {
            let time = time(document);
            let ports = cycles(document, "ports").unwrap();
            let refuted = bound(document, "ports").unwrap()["refuted"] == true;
            let holds = ports <= 1.1 * time && !refuted && ports > 0.6 && ports < 2.6;
            claim(holds, || format!("{ports} of {time}"))
        },
    );
}

#[test]
fn no_bound_explains_what_it_is_above() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let block = "vpgatherdd ymm0,[rdi+ymm1*4],ymm2; vpcmpeqd ymm2,ymm2,ymm2";
    assert_explained(
        block,
        &[],
        |_| true,
        |document| {
            let time = document["throughput"]["high"].as_f64().unwrap();
            let bounds = document["bounds"].as_array().unwrap();
            for bound in bounds {
                // 5 % for what was measured, 12 % for sums of latencies (docs/method/blocks.md).
                let low = bound["low"].as_f64().unwrap();
                assert!(low <= 1.13 * time || bound["refuted"] == true, "{bound} of {time}");
            }
            let assumptions = document["assumptions"].as_array().unwrap();
            let judged = assumptions.iter().find(|assumption| assumption["name"] == "bounds");
            if bounds.iter().any(|bound| bound["refuted"] == true) {
                assert_eq!(judged.unwrap()["verdict"], "violated");
            }
            Ok(())
        },
    );
}
