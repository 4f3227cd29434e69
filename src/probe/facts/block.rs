//! A basic block.

use iced_x86::Instruction;

/// How control leaves a block, other than to the blocks of [`Block::successors`].
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
    /// Arithmetic flags that are live before each of them.
    pub live: Vec<u32>,
    /// Indices of the blocks that may follow.
    pub successors: Vec<usize>,
    /// So many of its first instructions run as often as it is entered: an unknown jump of the function may
    /// lead to the others.
    pub certain: usize,
    /// How else it is left.
    pub exit: Exit,
    /// Whether it may be entered other than from the blocks of the function.
    pub is_entered: bool,
    /// Whether it is certain to be code: it is reached from the function's start or another entry.
    pub is_reached: bool,
}
