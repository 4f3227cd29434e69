//! What all checks share: how an outcome is made and worded.

use crate::initial::run_setup::Found;
use crate::measurement::{Assumption, Outcome};
use isa::code::Block;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn assumption(
    name: &'static str,
    outcome: Outcome,
    how: impl Into<String>,
) -> Assumption {
    Assumption { name, outcome, how: how.into() }
}

pub(super) fn outcome(held: bool) -> Outcome {
    if held { Outcome::Held } else { Outcome::Violated }
}

/// Why a trace cannot clear a block.
pub(super) const GAPS: &str =
    "some addresses are not in the trace (gathers, repeated string instructions)";

/// How a block without memory passes.
pub(super) const NO_MEMORY: &str = "no memory is touched";

/// Whether every address is known.
pub(super) fn is_whole(found: &Found) -> bool {
    found.complete && found.accesses.iter().all(|access| access.size > 0)
}

/// Instructions and in how many copies each, as `3 \`mov …\` (12 of 48 copies)`.
pub(super) fn listed(
    block: &Block,
    copies: usize,
    hits: impl Iterator<Item = (usize, usize)>,
) -> String {
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
pub(super) fn more(names: &mut Vec<String>, most: usize) -> String {
    let left = names.len().saturating_sub(most);
    names.truncate(most);
    let list = names.join(", ");
    if left > 0 { format!("{list} and {left} more") } else { list }
}

/// A trace by hand, for the tests of this module's files.
#[cfg(test)]
pub(super) mod example {
    use super::*;
    use crate::initial::trace::Access;

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
