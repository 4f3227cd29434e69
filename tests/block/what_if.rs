//! Changes that lower the time of a block: dependencies broken, instructions removed.

use super::explained::{assert_explained, decided, time};
use super::quiet_sandbox;
use crate::support::trial::claim;
use serde_json::Value;

/// The time with the dependency through the instruction of this text broken.
fn broken(document: &Value, text: &str) -> Option<f64> {
    let is = |change: &str| change.contains("broken") && change.contains(text);
    let all = document["what_if"].as_array()?;
    all.iter().find(|w| w["change"].as_str().is_some_and(is))?["cycles"].as_f64()
}

#[test]
fn breaking_the_chain_that_binds_lowers_the_time() {
    let Some(_quiet) = quiet_sandbox() else { return };
    // A chain of 3 cycles, and one of 1 beside it.
    let good = |d: &Value| decided(d) && broken(d, "imul").is_some();
    assert_explained("imul rax,rbx; add rcx,rbx", &["--what-if"], good, |document| {
        let (time, left) = (time(document), broken(document, "imul").unwrap());
        // One port multiplies: 1 cycle by hand; up to 1.8 are measured where the scheduler gives
        // that port to the others, too. With the chain it would be 3.
        claim(left < 0.8 * time, || format!("{left} of {time}"))
    });
}

/// Blocks with two chains or more: the instruction whose chain the block waits for, others whose
/// chain it does not, by latencies that every x86-64 core of the last ten years has in this order:
/// `divsd` longer than `mulsd`, that as long as `imul` or longer, that longer than `add`; a load's
/// address longer than any of them but the division.
const CHAINS: [(&str, &str, &[&str]); 9] = [
    ("imul rax,rbx; add rcx,rbx", "imul", &["add"]),
    ("imul rax,rax; add rcx,rdx; add rsi,rdx", "imul", &["add rcx", "add rsi"]),
    ("mov rax,[rax]; add rcx,rdx", "mov rax", &["add"]),
    ("mulsd xmm0,xmm1; xor rax,rbx", "mulsd", &["xor"]),
    ("divsd xmm0,xmm1; mulsd xmm2,xmm3; imul rax,rbx", "divsd", &["mulsd", "imul"]),
    ("adc rax,rbx; imul rcx,rdx", "imul", &["adc"]),
    ("movups [rbx],xmm0; movups xmm0,[rbx]; add rcx,rdx", "movups", &["add"]),
    ("mov [rbx],eax; mov [rbx+4],eax; mov rax,[rbx]; add rcx,rdx", "mov rax", &["add"]),
    ("mulsd xmm0,xmm1; mulsd xmm2,xmm3; add rdx,rbx", "all register", &["xmm0", "xmm2", "add"]),
];

#[test]
fn breaking_the_right_chain_gains_and_the_wrong_one_does_not() {
    let Some(_quiet) = quiet_sandbox() else { return };
    for (block, right, wrong) in CHAINS {
        let all = || wrong.iter().chain([&right]);
        let good = |d: &Value| decided(d) && all().all(|text| broken(d, text).is_some());
        assert_explained(block, &["--what-if"], good, |document| {
            let (time, gained) = (time(document), broken(document, right).unwrap());
            claim(gained < 0.9 * time, || format!("{right}: {gained} of {time}"))?;
            for text in wrong {
                let same = broken(document, text).unwrap();
                let holds = (same / time - 1.0).abs() < 0.1;
                claim(holds, || format!("{text}: {same} of {time}"))?;
            }
            Ok(())
        });
    }
}

#[test]
fn only_instructions_that_no_address_needs_are_removed() {
    let Some(_quiet) = quiet_sandbox() else { return };
    // add rbx,8 makes the load's address; add rcx,rdx nothing.
    let block = "add rbx,8; mov rax,[rbx]; add rcx,rdx";
    assert_explained(
        block,
        &["--what-if"],
        |_| true,
        |document| {
            let all = document["what_if"].as_array().unwrap();
            let changes: Vec<&str> = all.iter().map(|w| w["change"].as_str().unwrap()).collect();
            let dropped =
                |text: &str| changes.iter().any(|c| c.starts_with("without") && c.contains(text));
            claim(dropped("add rcx,rdx") && !dropped("add rbx,8"), || format!("{changes:?}"))
        },
    );
}
