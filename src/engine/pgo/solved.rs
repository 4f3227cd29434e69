//! The flow through each function: first of those with counts; then of others, by the calls of them.

use super::code::{Code, beyond};
use super::counted::{Counted, Targets};
use probe::flow::{Flow, Known, flow};
use std::collections::BTreeMap;

/// Most rounds over functions without counts: each solves one level of calls, or one of a recursion.
const MOST_ROUNDS: usize = 16;

/// Solves the functions of a module, in their order.
pub(super) fn solve(code: &Code, counted: &Counted) -> Vec<Flow> {
    let targets = &counted.targets;
    let mut known: Vec<Known> = code
        .functions
        .iter()
        .map(|one| {
            let own = one.facts.blocks.iter();
            let blocks = own.filter_map(|b| Some((b.start, *counted.blocks.get(&b.start)?)));
            let seen = targets.range(one.facts.range.clone());
            let seen = seen.map(|(at, seen)| (*at, seen.clone())).collect();
            Known { blocks: blocks.collect(), called: None, seen }
        })
        .collect();
    let solve =
        |number: usize, known: &Known| flow(&code.functions[number].facts, &code.module, known);
    let mut solved: Vec<Flow> =
        known.iter().enumerate().map(|(number, known)| solve(number, known)).collect();
    // A function without counts may call others without.
    for _ in 0..MOST_ROUNDS {
        let calls = calls(code, &solved, targets);
        let mut any = false;
        for (number, known) in known.iter_mut().enumerate() {
            let start = code.functions[number].facts.range.start;
            let called = calls.get(&start).copied().filter(|calls| *calls > 0);
            if known.blocks.is_empty() && called > known.called {
                known.called = called;
                solved[number] = solve(number, known);
                any = true;
            }
        }
        if !any {
            break;
        }
    }
    solved
}

/// Calls and jumps with a known count to each address.
fn calls(code: &Code, solved: &[Flow], targets: &Targets) -> BTreeMap<u64, u64> {
    let mut calls: BTreeMap<u64, u64> = BTreeMap::new();
    for (function, flow) in code.functions.iter().zip(solved) {
        let blocks = 0..function.facts.blocks.len();
        for edge in blocks.flat_map(|number| beyond(&function.facts, number, flow, targets)) {
            let sum = calls.entry(edge.to).or_default();
            *sum = sum.saturating_add(edge.flow.number().unwrap_or(0));
        }
    }
    calls
}
