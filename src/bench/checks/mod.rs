//! The assumptions of a measurement, each with its verdict and how that is known.
//!
//! | file | assumptions |
//! |---|---|
//! | `lines`, `aliasing` | what the address trace shows |
//! | `code` | the copies' code |
//! | `tlb` | translations of the pages |
//! | `timing` | the core, the passes, and what the harness did to the block |
//!
//! `subnormals` and `bounds` are judged where they are measured.

mod aliasing;
pub(crate) mod aligned;
mod code;
mod lines;
pub(crate) mod subnormal;
mod timing;
mod tlb;

use crate::initial::discover::Found;
use crate::report::{Holds, Invariant};
use crate::timing::timed::Timed;
use isa::code::Block;
use std::collections::{BTreeMap, BTreeSet};
use tma::Core;

/// All of them that follow from the trace and the timing of `copies` copies.
pub fn all(
    block: &Block,
    found: &Found,
    copies: usize,
    timed: &Timed,
    physical: usize,
    core: &Core,
) -> Vec<Invariant> {
    vec![
        lines::l1_data(block, found, physical, core.l1_data),
        tlb::data_tlb(found, core.facts().data_tlb.as_ref()),
        code::l1_code(block, found, copies, core.l1_code),
        code::op_cache(block, found, copies, core.facts().op_cache.as_ref()),
        timing::context_switches(timed),
        timing::neighbour(timed),
        lines::alignment(block, found),
        lines::line_crossing(block, found),
        lines::page_crossing(block, found),
        aliasing::pages(found, physical),
        aliasing::stores(block, found),
        timing::own_registers(found),
        timing::reproducibility(timed),
    ]
}

fn invariant(name: &'static str, verdict: Holds, how: impl Into<String>) -> Invariant {
    Invariant { name, verdict, how: how.into() }
}

fn verdict(held: bool) -> Holds {
    if held { Holds::Held } else { Holds::Violated }
}

/// Why a trace cannot clear a block.
const GAPS: &str = "some addresses are not in the trace (gathers, repeated string instructions)";

/// How a block without memory passes.
const NO_MEMORY: &str = "no memory is touched";

/// Whether every address is known.
fn is_whole(found: &Found) -> bool {
    found.complete && found.accesses.iter().all(|access| access.size > 0)
}

/// Instructions and in how many copies each, as `3 \`mov …\` (12 of 48 copies)`.
fn listed(block: &Block, copies: usize, hits: impl Iterator<Item = (usize, usize)>) -> String {
    let mut by: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (instruction, copy) in hits {
        by.entry(instruction).or_default().insert(copy);
    }
    let mut names: Vec<_> = by
        .iter()
        .map(|(i, hit)| {
            format!("{i} `{}` ({} of {copies} copies)", block.instructions[*i].text, hit.len())
        })
        .collect();
    more(&mut names, 4)
}

/// The first few of a list, and how many more there are.
fn more(names: &mut Vec<String>, most: usize) -> String {
    let left = names.len().saturating_sub(most);
    names.truncate(most);
    let list = names.join(", ");
    if left > 0 { format!("{list} and {left} more") } else { list }
}

/// A trace by hand, for the tests of this module's files.
#[cfg(test)]
mod example {
    use super::*;
    use crate::initial::discover::Access;

    pub fn block(hex: &str) -> Block {
        Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap()
    }

    /// Accesses as copy, instruction, address, size, and whether it writes.
    pub fn found(pages: &[u64], accesses: &[(usize, usize, u64, u64, bool)]) -> Found {
        let access =
            |(copy, instruction, address, size, writes): &(usize, usize, u64, u64, bool)| Access {
                copy: *copy,
                instruction: *instruction,
                address: *address,
                size: *size,
                reads: !writes,
                writes: *writes,
            };
        Found {
            values: crate::Values::default(),
            copies: 4,
            pages: pages.to_vec(),
            lines: Vec::new(),
            taken: Vec::new(),
            reseeded: Vec::new(),
            accesses: accesses.iter().map(access).collect(),
            complete: true,
            end: Default::default(),
            rip_area: 0,
        }
    }
}
