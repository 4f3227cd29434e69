//! The code of a form: what it is built from, and the bytes that come of it.

use super::required_state::Needs;
use crate::initial::trace::Slot;
use isa::code::Block;

/// How to build a form.
#[derive(Debug, Clone)]
pub struct Shape<'a> {
    /// The block.
    pub block: &'a Block,
    /// What to restore.
    pub needs: &'a Needs,
    /// How many copies.
    pub copies: usize,
    /// Whether memory lines must be restored.
    pub lines: bool,
    /// Registers (encoding numbers) set again before every copy but the first.
    pub reseeded: &'a [u8],
    /// For each copy, whether the final conditional jump is taken there.
    pub taken: &'a [bool],
    /// Offset of the code in the region.
    pub start: usize,
    /// Where `[rip+x]` points, from the start of the region.
    pub rip_area: usize,
}

/// Code ready to be written to the region.
#[derive(Debug, Clone)]
pub struct Program {
    /// Where its bytes go.
    pub start: usize,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Offset, copy and instruction of everything that came from the block.
    pub origins: Vec<(usize, usize, usize)>,
    /// What a trace stores, in the order of the code.
    pub slots: Vec<Slot>,
    /// Bytes that they take.
    pub traced: usize,
    /// Where a trace stores whether the final jump is taken, one byte a copy.
    pub conditions: usize,
}

impl Program {
    /// The copy and instruction at an offset in the region.
    pub fn origin(&self, offset: usize) -> Option<(usize, usize)> {
        let next = self.origins.partition_point(|(at, ..)| *at <= offset);
        let (_, copy, inst) = self.origins.get(next.checked_sub(1)?)?;
        Some((*copy, *inst))
    }

    /// First byte behind it.
    pub fn end(&self) -> usize {
        self.start + self.bytes.len()
    }
}
