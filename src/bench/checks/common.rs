//! Shared by all checks: outcomes and their wording.

use crate::initial::run_setup::RunSetup;
use crate::measurement::{Assumed, Assumption, Outcome};
use isa::code::Block;
use std::collections::{BTreeMap, BTreeSet};

/// An assumption of this name, by what became of it and the evidence.
impl Assumed {
    pub(super) fn held(self, how: impl Into<String>) -> Assumption {
        self.judged(true, how)
    }

    pub(super) fn violated(self, how: impl Into<String>) -> Assumption {
        self.judged(false, how)
    }

    pub(super) fn unchecked(self, how: impl Into<String>) -> Assumption {
        Assumption { name: self, outcome: Outcome::Unchecked, how: how.into() }
    }

    pub(super) fn judged(self, held: bool, how: impl Into<String>) -> Assumption {
        let outcome = if held { Outcome::Held } else { Outcome::Violated };
        Assumption { name: self, outcome, how: how.into() }
    }
}

/// The reason where a trace is incomplete.
pub(super) const GAPS: &str =
    "some addresses are not in the trace (gathers, repeated string instructions)";

/// The evidence for a block without memory accesses.
pub(super) const NO_MEMORY: &str = "the block does not access memory";

/// Whether the trace has every address.
pub(super) fn is_complete(setup: &RunSetup) -> bool {
    setup.complete && setup.accesses.iter().all(|access| access.size > 0)
}

/// Instructions, and the number of copies of each, as `3 \`mov …\` (12 of 48 copies)`.
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
    abridged(&mut names, 4)
}

/// The first entries of a list, and the number of the others.
pub(super) fn abridged(names: &mut Vec<String>, most: usize) -> String {
    let left = names.len().saturating_sub(most);
    names.truncate(most);
    let list = names.join(", ");
    if left > 0 { format!("{list} and {left} more") } else { list }
}

/// A hand-written trace for tests.
#[cfg(test)]
pub(super) mod example {
    use super::*;
    use crate::initial::trace::Access;

    pub fn block(hex: &str) -> Block {
        Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap()
    }

    /// Accesses as copy, instruction, address, size, and whether it writes.
    pub fn setup(pages: &[u64], accesses: &[(usize, usize, u64, u64, bool)]) -> RunSetup {
        let access =
            |(copy, instruction, address, size, writes): &(usize, usize, u64, u64, bool)| Access {
                copy: *copy,
                instruction: *instruction,
                address: *address,
                size: *size,
                reads: !writes,
                writes: *writes,
            };
        RunSetup {
            values: crate::Values::default(),
            copies: 4,
            pages: pages.to_vec(),
            lines: Vec::new(),
            taken: Vec::new(),
            reseeded: Vec::new(),
            accesses: accesses.iter().map(access).collect(),
            complete: true,
            without_faults: Default::default(),
            end: Default::default(),
            rip_area: 0,
        }
    }
}
