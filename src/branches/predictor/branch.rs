/// One executed branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Where it is.
    pub address: u64,
    /// Its kind, and what it did.
    pub kind: Kind,
}

/// Kind of a branch, and what it did. Direct jumps need no prediction that can fail for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A conditional jump.
    Conditional {
        /// Whether it was taken.
        taken: bool,
    },
    /// A jump through a register or memory.
    Indirect {
        /// Where it went.
        target: u64,
    },
    /// A direct call.
    Call {
        /// The address after it.
        back: u64,
    },
    /// A call through a register or memory of which the return is not seen.
    Called {
        /// Where it went.
        target: u64,
    },
    /// A call through a register or memory.
    IndirectCall {
        /// Where it went.
        target: u64,
        /// The address after it.
        back: u64,
    },
    /// A return.
    Return {
        /// Where it went.
        target: u64,
    },
}
