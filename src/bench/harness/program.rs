//! The specification of a form's code, and the resulting program.

use super::required_state::RequiredState;
use super::slots::Slot;
use isa::code::Block;

/// The specification of a form.
#[derive(Debug, Clone)]
pub struct Shape<'a> {
    /// The block.
    pub block: &'a Block,
    /// State to restore.
    pub required_state: &'a RequiredState,
    /// Copies of the block.
    pub copies: usize,
    /// Whether memory lines must be restored.
    pub lines: bool,
    /// Registers (encoding numbers) to reinitialise before every copy but the first.
    pub reseeded: &'a [u8],
    /// For each copy, whether its final conditional jump is taken.
    pub taken: &'a [bool],
    /// Offset of the code in the region.
    pub start: usize,
    /// Where `[rip+x]` points, from the start of the region.
    pub rip_area: usize,
}

/// Code ready to be written to the region.
#[derive(Debug, Clone)]
pub struct Program {
    /// Offset of the code in the region.
    pub start: usize,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Offset, copy and instruction of every instruction of the block.
    pub origins: Vec<(usize, usize, usize)>,
    /// Registers that a trace stores, in the order of the code.
    pub slots: Vec<Slot>,
    /// Bytes of the trace.
    pub traced: usize,
    /// Where a trace stores whether the final jump is taken, one byte per copy.
    pub conditions: usize,
}

impl Program {
    /// The copy and instruction at an offset in the region.
    pub fn origin(&self, offset: usize) -> Option<(usize, usize)> {
        let next = self.origins.partition_point(|(at, ..)| *at <= offset);
        let (_, copy, inst) = self.origins.get(next.checked_sub(1)?)?;
        Some((*copy, *inst))
    }

    /// Offset of the first byte after it.
    pub fn end(&self) -> usize {
        self.start + self.bytes.len()
    }
}
