//! Why a block takes so long: verdicts on blocks whose nature follows from what is published of
//! every x86-64 core of the last ten years.

use super::explained::{assert_explained, cycles, decided, time};
use super::{json, quiet_sandbox, sandbox};
use crate::support::processor::is_intel;
use crate::support::trial::claim;
use serde_json::Value;

/// Latencies and throughputs: the table in docs/results/accuracy.md and uops.info. A multiplication
/// takes 3 cycles, and the ports start fewer of them in a cycle than are issued; a load that leads
/// to the next takes 4 or 5; scalar additions and multiplications of floating point 3 or 4. Stores
/// to memory that the next iteration loads: xmm at least 5 cycles, blocked at least 10.
const KNOWN: [(&str, &str); 9] = [
    ("imul rax,rax", "dependency"),
    ("imul rax,rax; add rax,rdx", "dependency"),
    ("mov rax,[rax]", "dependency"),
    ("addsd xmm0,xmm1; mulsd xmm0,xmm1", "dependency"),
    ("imul rax,rbx,3; imul rcx,rbx,5; imul rdx,rbx,7", "ports"),
    ("popcnt eax,ebx; imul ecx,ebx,3; imul edx,ebx,5; imul esi,ebx,7", "ports"),
    ("movups [rbx],xmm0; movups xmm0,[rbx]", "store-forwarding"),
    ("mov [rbx],eax; mov [rbx+4],eax; mov rax,[rbx]", "store-forwarding"),
    ("mov [rbx],al; mov rax,[rbx]", "store-forwarding"),
];

/// Moves that no instruction waits for. Renaming carries them out, so what bounds them is how many
/// the pipeline takes in a cycle.
const MOVES: &str = "mov rcx,rbx; mov rdx,rbx; mov rsi,rbx; mov rdi,rbx; mov r8,rbx; mov r9,rbx";

/// What may be said of [`MOVES`]: on Intel's cores the six slots, or the front end: a Redwood Cove delivers six
/// instructions of three bytes, also nops, in 1.10 cycles, and longer ones in 1.00. On Zen 4 and 5 a microbenchmark of
/// moves, which measures the ports, and the front end are no faster than renaming, so that nothing tells the three apart.
fn width_of_moves() -> &'static [&'static str] {
    if is_intel() { &["issue-width", "front-end"] } else { &["issue-width", "front-end", "ports"] }
}

/// The verdict is one of these, and one node of the tree has it.
fn has_verdict(document: &Value, expected: &[&str]) -> Result<(), String> {
    let found = document["hierarchy"]["bound"].as_str().unwrap();
    let verdict = || format!("{found}: {}", document["hierarchy"]["verdict"]);
    claim(expected.contains(&found), verdict)?;
    let nodes = document["hierarchy"]["nodes"].as_array().unwrap();
    let explain: Vec<&Value> = nodes.iter().filter(|n| n["is_verdict"] == true).collect();
    assert_eq!(explain.len(), 1, "{explain:?}");
    Ok(())
}

#[test]
fn no_verdict_is_wrong() {
    let Some(_quiet) = quiet_sandbox() else { return };
    for (block, expected) in KNOWN {
        assert_explained(block, &[], decided, |document| has_verdict(document, &[expected]));
    }
    assert_explained(MOVES, &[], decided, |document| {
        let slots = cycles(document, "issue-width").expect("every table has its width");
        claim(slots <= 1.1 * time(document), || format!("{slots} slots, {}", time(document)))?;
        has_verdict(document, width_of_moves())
    });
}

#[test]
fn nodes_stand_below_their_parents() {
    let Some(_quiet) = quiet_sandbox() else { return };
    assert_explained("imul rax,rax", &[], decided, |document| {
        let mut open: Vec<&str> = Vec::new();
        for node in document["hierarchy"]["nodes"].as_array().unwrap() {
            match node["parent"].as_str() {
                None => open.clear(),
                // The parent is the last one opened at its depth.
                Some(parent) => {
                    let depth = open.iter().position(|id| *id == parent);
                    open.truncate(depth.unwrap_or_else(|| panic!("{node}")) + 1);
                }
            }
            open.push(node["id"].as_str().unwrap());
        }
        Ok(())
    });
}

#[test]
fn without_explanation_there_is_no_verdict() {
    let Some(_busy) = sandbox() else { return };
    assert!(json(&["480fafc0"])["hierarchy"]["bound"].is_null());
}

/// Quotient and remainder are where the dividend is: divisions of one microbenchmark wait for each
/// other, and in the block the upper half is set anew.
#[test]
fn what_is_left_of_a_chain_is_no_bound_of_the_ports() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let block = "xor edx,edx; div rsi; add rax,rdi";
    assert_explained(
        block,
        &[],
        |_| true,
        |document| {
            let verdict = document["hierarchy"]["verdict"].as_str().unwrap();
            let of = document["hierarchy"]["bound"].as_str().unwrap();
            let measured = cycles(document, "ports").is_none()
                && verdict.contains("not measured: ports:")
                && verdict.contains("implicit");
            let judged = ["dependency", "undecided", "unexplained"].contains(&of);
            claim(measured && judged, || format!("{of}: {verdict}"))
        },
    );
}

/// Chains beside so many other instructions that cuts of all their registers fill the slots. By
/// hand: one addition that feeds itself takes a cycle, two of them two; all others need less, four
/// to eight slots in a cycle. The prefix sum adds a load to what it stores: 5 slots.
const NEARLY_FULL: [&str; 2] = [
    "add rax,1; add rbx,r8; add rcx,r8; add rdx,r8",
    "add rax,[rdi]; mov [rsi],rax; add rdi,8; add rsi,8",
];

#[test]
fn the_cost_of_cuts_hides_no_dependency() {
    let Some(_quiet) = quiet_sandbox() else { return };
    for block in NEARLY_FULL {
        assert_explained(block, &[], decided, |document| {
            // Where only four operations are issued in a cycle, slots take as long.
            let slots = cycles(document, "slots").or_else(|| cycles(document, "issue-width"));
            match slots.is_none_or(|slots| slots < 0.85 * time(document)) {
                true => has_verdict(document, &["dependency"]),
                false => Ok(()),
            }
        });
    }
}

/// Two loads, a store and three that any core since Haswell has units for (uops.info): six of them take what six slots do. What
/// they are replaced by takes no longer.
#[test]
fn no_bound_is_above_a_block_near_the_width() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let block = "mov r8,[rbx]; mov [rbp],r10; add rcx,rdx; cmp rsi,rdi; mov r9,[rbx+8]; mov r11d,1";
    let is_ok = |document: &Value| {
        let holds = |a: &Value| a["name"] == "contention" && a["verdict"] == "held";
        document["assumptions"].as_array().is_some_and(|all| all.iter().any(holds))
    };
    assert_explained(block, &[], is_ok, |document| {
        let all = document["assumptions"].as_array().unwrap();
        let bounds = all.iter().find(|a| a["name"] == "bounds").expect("it has bounds");
        claim(bounds["verdict"] != "violated", || bounds.to_string())
    });
}

/// Eight of one cycle each, without a dependency on another: no core has more than six units for them (uops.info), and each has
/// at least as many slots.
#[test]
fn more_arithmetic_than_units_does_not_wait_for_the_front_end() {
    let Some(_quiet) = quiet_sandbox() else { return };
    let block = "and eax,r15d; and ebx,r15d; and ecx,r15d; and edx,r15d; and esi,r15d; and edi,r15d; \
                 and ebp,r15d; and r8d,r15d";
    let has_verdict = |document: &Value| document["hierarchy"]["bound"].is_string();
    assert_explained(block, &[], has_verdict, |document| {
        let found = document["hierarchy"]["bound"].as_str().unwrap();
        let slots = cycles(document, "issue-width").expect("every table has its width");
        // Where slots take nearly as long, the front end may, too.
        let is_near = slots > 0.9 * time(document);
        claim(is_near || found != "front-end", || {
            format!("{found}: {}", document["hierarchy"]["verdict"])
        })
    });
}
