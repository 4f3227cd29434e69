//! A basic block.

use iced_x86::Instruction;

/// How control leaves a block, apart from [`Block::successors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Not at all.
    None,
    /// To another function, or by a return.
    Leaves,
    /// It ends in a call, which may not come back.
    MayEnd,
    /// Anywhere: an indirect jump whose targets are not known.
    Unknown,
}

/// A basic block.
#[derive(Debug, Clone)]
pub struct Block {
    /// First address (p_vaddr).
    pub start: u64,
    /// Address after its last instruction.
    pub end: u64,
    /// Its instructions, at their own addresses.
    pub instructions: Vec<Instruction>,
    /// Arithmetic flags live before each instruction.
    pub live: Vec<u32>,
    /// Indices of the blocks that may follow.
    pub successors: Vec<usize>,
    /// Number of first instructions that run as often as the block is entered; an unknown jump may
    /// lead to the others.
    pub certain: usize,
    /// Its exit other than to successors.
    pub exit: Exit,
    /// Whether it may be entered other than from the blocks of the function.
    pub is_entered: bool,
    /// Whether it is certain to be code: it is reached from the function's start or another entry.
    pub is_reached: bool,
}
