//! Loop bodies, measured as the program runs them.

use super::explained::{assert_explained, time};
use super::{json, quiet_sandbox, sandbox};
use crate::support::trial::claim;
use serde_json::Value;

fn notes(document: &Value) -> String {
    document["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

/// Loops and how many iterations at least they are run for: as compilers end them.
const ENDS: [(&str, &str); 10] = [
    ("a counter", "a: imul rax,rbx; dec ecx; jne a"),
    ("a counter in 64 bits", "a: imul rax,rbx; sub rcx,1; jne a"),
    ("a bound", "a: add rdx,[rsi+rax*8]; inc rax; cmp rax,rcx; jne a"),
    ("a signed bound", "a: add rdx,[rsi+rax*8]; add rax,2; cmp rax,rcx; jl a"),
    ("a constant", "a: add rdx,[rsi+rax]; add rax,8; cmp rax,0x2000; jne a"),
    ("two pointers", "a: add rdx,[rsi]; add rsi,8; cmp rsi,rdi; jne a"),
    ("a pointer going down", "a: add rdx,[rsi]; sub rsi,8; cmp rsi,rdi; ja a"),
    ("a bound in memory", "a: add rdx,[rsi+rax*8]; inc rax; cmp rax,[rsp+16]; jb a"),
    ("a character", "a: movzx eax,byte ptr [rdi]; inc rdi; test al,al; jne a"),
    ("a list", "a: add rax,[rdi+8]; mov rdi,[rdi]; test rdi,rdi; jne a"),
];

#[test]
fn loops_end_by_their_own_exit() {
    let Some(_busy) = sandbox() else { return };
    for (what, block) in ENDS {
        let document = json(&["--asm", block]);
        let notes = notes(&document);
        let how = notes.split("measured as a loop: ").nth(1).unwrap_or_else(|| {
            panic!("{what}: {notes} {}", document["reason"]);
        });
        assert!(how.contains("ended by its own exit"), "{what}: {how}");
        let iterations: u32 = how.split(' ').next().unwrap().parse().unwrap();
        assert!((64..=1024).contains(&iterations), "{what}: {how}");
        assert_eq!(document["headline"], "loop", "{what}");
    }
}

/// Nothing in it decides when it ends: its copies are chained by their back edges.
#[test]
fn a_loop_whose_end_cannot_be_chosen_is_counted() {
    let Some(_busy) = sandbox() else { return };
    let notes = notes(&json(&["--asm", "a: imul rax,rbx; test rax,rcx; jne a"]));
    assert!(notes.contains("chained by their back edges"), "{notes}");
}

/// Cycles of an iteration. A multiplication takes 3 cycles, a load that leads to the next 4 or 5
/// (uops.info, every core since 2013). The others were timed natively on Zen 4, and read up to ten
/// times as much in straight copies, whose addresses are all alike: a histogram 1.0 to 2.2, loads that
/// follow stores 0x800 bytes away 1.0, a stencil 2.0.
const NATIVE: [(&str, f64, f64); 5] = [
    ("a: imul rax,rbx; dec rcx; jne a", 2.85, 3.15),
    ("a: mov rdi,[rdi]; test rdi,rdi; jne a", 3.8, 5.3),
    (
        "a: movzx eax,byte ptr [rsi]; inc rsi; inc dword ptr [rdi+rax*4]; cmp rsi,rdx; jne a",
        0.9,
        2.6,
    ),
    ("a: mov [rbx+0x800],rcx; mov rdx,[rbx]; add rsi,rdx; dec r8; jne a", 0.9, 2.2),
    (
        "a: movss xmm0,[rsi+rax*4]; addss xmm0,[rsi+rax*4+4]; addss xmm0,[rsi+rax*4+8]; \
         movss [rdi+rax*4],xmm0; inc rax; cmp rax,rdx; jne a",
        0.9,
        2.6,
    ),
];

#[test]
fn a_loop_takes_what_it_takes_natively() {
    let Some(_quiet) = quiet_sandbox() else { return };
    for (block, low, high) in NATIVE {
        let judge = |document: &Value| {
            let cycles = time(document);
            claim((low..=high).contains(&cycles), || format!("{cycles}: {}", notes(document)))
        };
        assert_explained(block, &["--no-explain"], |_| true, judge);
    }
}

/// A bound that the loop refutes explains nothing: the straight copies of this histogram wait for
/// stores to the same address, the loop does not.
#[test]
fn the_verdict_is_of_the_loop_and_not_of_its_copies() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let block = NATIVE[2].0;
    let judge = |document: &Value| {
        let bound = document["hierarchy"]["bound"].as_str().unwrap_or_default();
        claim(bound != "store-forwarding", || document["hierarchy"]["verdict"].to_string())
    };
    assert_explained(block, &[], |document| document["headline"] == "loop", judge);
}
