//! Masked accesses: what their masks select, and the pages that they may access all the same.
//!
//! What a mask leaves out faults no page, so none is mapped on demand. The processor looks all the same: without a page
//! it suppresses the fault each time, in microcode, which takes hundreds of cycles. In a program the page is there.

use super::slots::{Slot, mask};
use super::stored::{Stored, selected};
use super::trace::{all_lanes, each, plain};
use crate::sandbox::layout::PAGE;
use isa::code::{Block, Inst};

/// Most pages that masked accesses are given.
const MOST_PAGES: usize = 64;

/// A masked instruction of a traced run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masked {
    /// Instruction, from 0.
    pub instruction: usize,
    /// Copies in which its mask selected nothing.
    pub empty: usize,
    /// Copies whose mask was traced.
    pub copies: usize,
}

/// The masked accesses of a traced run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskedAccesses {
    /// Its masked instructions, in order.
    pub instructions: Vec<Masked>,
    /// Pages that they access with other masks, in order of discovery.
    pub pages: Vec<u64>,
}

/// The masked accesses of a trace, with `[rip+x]` relative to `rip`.
pub(super) fn masked(
    block: &Block,
    slots: &[Slot],
    bytes: &[u8],
    copies: usize,
    rip: u64,
) -> MaskedAccesses {
    let mut found = MaskedAccesses::default();
    if !block.instructions.iter().any(|inst| mask(inst).is_some()) {
        return found;
    }
    each(block, slots, bytes, copies, |_, instruction, inst, stored| {
        if mask(inst).is_none() {
            return;
        }
        let known = found.instructions.iter().position(|m| m.instruction == instruction);
        let at = known.unwrap_or_else(|| {
            found.instructions.push(Masked { instruction, empty: 0, copies: 0 });
            found.instructions.len() - 1
        });
        if let Some(selected) = selected(inst, stored) {
            found.instructions[at].copies += 1;
            found.instructions[at].empty += usize::from(selected == 0);
        }
        for (address, size) in ranges(inst, stored, rip) {
            let (first, last) = (address, address.saturating_add(size.max(1) - 1));
            for page in [first, last].map(|end| end & !(PAGE as u64 - 1)) {
                if found.pages.len() < MOST_PAGES && !found.pages.contains(&page) {
                    found.pages.push(page);
                }
            }
        }
    });
    found
}

/// First bytes and sizes of all that an instruction accesses with a mask that selects everything.
fn ranges(inst: &Inst, stored: &Stored<'_>, rip: u64) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for memory in &inst.memory {
        let size = memory.memory_size().size() as u64;
        if memory.index().is_vector_register() {
            let lanes = all_lanes(inst, memory, stored).unwrap_or_default();
            all.extend(lanes.into_iter().map(|address| (address, size)));
        } else {
            all.extend(plain(inst, memory, stored, rip).map(|address| (address, size)));
        }
    }
    all
}
