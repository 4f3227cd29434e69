//! A probe for counts as data.

/// Bytes of `jmp rel32` and `call rel32`.
pub const JUMP: u64 = 5;

/// Kind of patch of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The target of a `call rel32` is changed.
    Retarget,
    /// A jump over one instruction of at least five bytes.
    Single,
    /// A jump over several instructions.
    Multi,
    /// A jump over one shorter instruction, whose displacement ends in the bytes after it.
    Pun,
}

/// The count, in the same trampoline, of a block that is entered only from the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Then {
    /// Index of the block.
    pub block: usize,
    /// Its first address.
    pub at: u64,
    /// Whether the count must preserve the flags.
    pub keeps_flags: bool,
}

/// A place for a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Index of its block.
    pub block: usize,
    /// Address of the first patched instruction (p_vaddr).
    pub at: u64,
    /// Address after the last patched instruction.
    pub next: u64,
    /// How it is patched.
    pub kind: Kind,
    /// Whether the count must preserve the flags.
    pub keeps_flags: bool,
    /// Blocks that begin among the patched instructions after the first.
    pub then: Vec<Then>,
    /// Address of its trampoline (p_vaddr); anywhere near if not given.
    pub trampoline: Option<u64>,
}
