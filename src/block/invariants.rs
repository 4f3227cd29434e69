//! The assumptions of a measurement, each with its verdict and how that is known.

use super::discover::Found;
use super::document::{Holds, Invariant};
use super::timed::Timed;
use crate::code::Block;
use std::collections::{BTreeMap, BTreeSet};

/// All of them, from the trace and the timing.
pub fn all(
    block: &Block,
    found: &Found,
    timed: &Timed,
    physical: usize,
    switches: Option<u64>,
) -> Vec<Invariant> {
    vec![
        l1_data(found),
        code_fit(block, found),
        context_switches(switches),
        neighbour(timed),
        line_crossing(block, found),
        aliasing(found, physical),
        invariant("subnormals", Holds::Unchecked, "ran with FTZ and DAZ set; no run without them"),
        reseeding(found),
        reproducibility(timed),
    ]
}

fn invariant(name: &'static str, verdict: Holds, how: impl Into<String>) -> Invariant {
    Invariant { name, verdict, how: how.into() }
}

fn verdict(held: bool) -> Holds {
    if held { Holds::Held } else { Holds::Violated }
}

/// Ways and sets of the L1 data cache: 8 × 64 lines of 64 bytes if the kernel does not say.
fn l1_geometry() -> (usize, usize) {
    let read = |file: &str| -> Option<usize> {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index0/{file}");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    (read("ways_of_associativity").unwrap_or(8), read("number_of_sets").unwrap_or(64))
}

fn l1_data(found: &Found) -> Invariant {
    if !found.complete {
        let how = "some addresses are not in the trace";
        return invariant("l1-data", Holds::Unchecked, how);
    }
    let (ways, sets) = l1_geometry();
    let mut lines: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for access in &found.accesses {
        for line in access.address / 64..=(access.address + access.size.max(1) - 1) / 64 {
            lines.entry(line % sets.max(1) as u64).or_default().insert(line);
        }
    }
    let fullest = lines.values().map(BTreeSet::len).max().unwrap_or(0);
    let total: usize = lines.values().map(BTreeSet::len).sum();
    // One way is left to the harness.
    let how = format!(
        "address trace: {total} lines, at most {fullest} in one set of {ways} ways, touched in \
         every run before the one that counts"
    );
    invariant("l1-data", verdict(fullest < ways), how)
}

fn code_fit(block: &Block, found: &Found) -> Invariant {
    let bytes = block.bytes.len() * found.copies;
    let instructions = block.instructions.len() * found.copies;
    let how = format!("{bytes} bytes and {instructions} instructions of code");
    invariant("l1-code", verdict(bytes <= 16 * 1024 && instructions <= 1100), how)
}

fn context_switches(switches: Option<u64>) -> Invariant {
    match switches {
        None => invariant("context-switches", Holds::Unchecked, "the kernel does not tell"),
        Some(n) => {
            let how = format!(
                "{n} involuntary switches of the worker by the kernel's count; samples they hit \
                 are trimmed; switches of the host are not seen"
            );
            invariant("context-switches", verdict(n == 0), how)
        }
    }
}

fn neighbour(timed: &Timed) -> Invariant {
    let all = timed.kept + timed.contended;
    let how = format!(
        "throughput sentinel around every sample: {} of {all} dropped, all others within 6 % of \
         the absolute value",
        timed.contended
    );
    invariant("neighbour", verdict(timed.kept > 0), how)
}

fn line_crossing(block: &Block, found: &Found) -> Invariant {
    let crossing: BTreeSet<usize> = found
        .accesses
        .iter()
        .filter(|a| a.size > 0 && a.address % 64 + a.size > 64)
        .map(|a| a.instruction)
        .collect();
    let names: Vec<_> =
        crossing.iter().map(|i| format!("{i} `{}`", block.instructions[*i].text)).collect();
    match (names.is_empty(), found.complete) {
        (true, false) => {
            invariant("line-crossing", Holds::Unchecked, "some addresses are not in the trace")
        }
        (true, true) => invariant("line-crossing", Holds::Held, "address trace of every copy"),
        _ => {
            let how = format!("address trace: instruction {}", names.join(", "));
            invariant("line-crossing", Holds::Violated, how)
        }
    }
}

fn aliasing(found: &Found, physical: usize) -> Invariant {
    let pages = found.pages.len();
    let how = format!("{pages} pages on {physical} physical ones");
    invariant("page-aliasing", verdict(pages <= physical), how)
}

fn reseeding(found: &Found) -> Invariant {
    if found.reseeded.is_empty() {
        return invariant("own-registers", Holds::Held, "no register was set between copies");
    }
    let names = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
    let name = |r: &u8| names.get(usize::from(*r)).map_or(format!("r{r}"), |n| (*n).to_owned());
    let list: Vec<_> = found.reseeded.iter().map(name).collect();
    let how = format!(
        "{} set again before every copy, since the copy before overwrites it: one more load each, \
         and dependencies through it are cut",
        list.join(", ")
    );
    invariant("own-registers", Holds::Violated, how)
}

fn reproducibility(timed: &Timed) -> Invariant {
    let (long, short) = timed.agreeing();
    let all = timed.batches.len();
    let how = format!(
        "the fastest state was met by {long} (long run) and {short} (short run) of {all} batches \
         in {} passes",
        timed.passes
    );
    match timed.passes {
        0 => invariant("reproducibility", Holds::Unchecked, "no pass was kept"),
        1 => invariant("reproducibility", Holds::Unchecked, format!("only one pass: {how}")),
        _ => invariant("reproducibility", verdict(timed.is_reproduced()), how),
    }
}
