//! Bounds on Golden Cove against what was measured on one: tests/figures/forwarding.py and
//! tests/figures/native_chains.py; docs/dependencies.md has their output.

use crate::code::{Syntax, assemble};
use crate::deps::memory::Settings;
use crate::deps::{Analyser, Code};
use crate::latency::Latencies;

/// The slowest recurrence's least and most cycles.
fn bound(text: &str) -> (f64, f64) {
    let bytes = assemble(text, Syntax::Intel).unwrap();
    let code = Code::of_bytes(&bytes, crate::test_core(Some("emr")).facts()).unwrap();
    let settings = Settings { window: 512, runs: 3, given: Vec::new() };
    let found = Analyser::new(Latencies::new(&crate::test_core(Some("emr"))).unwrap())
        .analyse(&code, &settings)
        .recurrences;
    found.first().map_or((0.0, 0.0), |r| (r.low, r.high))
}

/// Within what the latencies' ranges leave open, and two tenths of a cycle.
fn agrees(text: &str, measured: f64) {
    let (low, high) = bound(text);
    assert!(low - 0.2 <= measured && measured <= high + 0.2, "{text}: {low} to {high}, {measured}");
}

#[test]
fn a_single_cycle_between_load_and_store_makes_forwarding_slower_than_none_or_two() {
    let moving = |what: &str| format!("mov rdx,[r15+rcx*8]; add rcx,1; {what} mov [r15+rcx*8],rdx");
    agrees(&moving(""), 5.01);
    agrees(&moving("add rdx,rbx;"), 7.48);
    agrees(&moving("add rdx,rbx; add rdx,rbx;"), 7.56);
    agrees(&moving("add rdx,rbx; add rdx,rbx; add rdx,rbx;"), 8.53);
    agrees(&moving("imul rdx,rdx;"), 8.01);
    agrees("mov rax,[r15+rcx*8]; imul rax,rax; mov [r15+rcx*8],rax", 7.99);
    agrees("mov [r15+64],rax; mov eax,[r15+68]; add rax,rbx", 7.33);
    agrees("mov rdx,[r15]; add r15,6; add rdx,rbx; mov [r15],rdx", 6.22);
}

#[test]
fn additions_done_by_renaming_cost_those_that_cannot_add_for_themselves() {
    for (text, measured) in [
        ("add rax,1; and rax,rbx", 1.0),
        ("lea rdx,[rax-1]; and rax,rdx", 1.0),
        ("add rax,1; imul rax,rax", 3.0),
        ("add rax,1; shl rax,3", 3.0),
        ("add rax,1; bswap rax", 4.0),
        ("add eax,1; and eax,ebx", 2.0),
        ("inc eax", 1.0),
        ("sub eax,1", 1.0),
    ] {
        agrees(text, measured);
    }
}

/// Measured by `tdtool block`.
#[test]
fn a_locked_instruction_waits_until_stores_are_in_the_cache() {
    agrees("lock add dword ptr [rdi],1", 18.1);
    agrees("lock add [rdi],rbx", 18.0);
    agrees("lock xadd [rdi],rax", 18.0);
}

#[test]
fn other_processors_know_neither() {
    let bytes = assemble("add rax,1; shl rax,3", Syntax::Intel).unwrap();
    let code = Code::of_bytes(&bytes, crate::test_core(Some("zen3")).facts()).unwrap();
    let settings = Settings { window: 256, runs: 3, given: Vec::new() };
    let latencies = Latencies::new(&crate::test_core(Some("zen3"))).unwrap();
    // Both take a cycle on Zen 3 (uops.info).
    assert_eq!(Analyser::new(latencies).analyse(&code, &settings).recurrences[0].cycles, 2.0);
}
