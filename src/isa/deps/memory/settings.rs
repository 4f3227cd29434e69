//! How memory dependencies are looked for, and with which initial values.

/// Values that are known at the beginning of the first iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// General-purpose registers, in encoding order.
    pub registers: [Option<u64>; 16],
    /// Eight bytes each: address and value.
    pub memory: Vec<(u64, u64)>,
    /// Every other eight bytes of memory, at addresses divisible by eight.
    pub fill: Option<u64>,
}

/// How to look for dependencies.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Entries of the reorder buffer: how far apart a store and a load may be, in instructions.
    pub window: u32,
    /// Runs, each with random values of its own.
    pub runs: u32,
    /// What is known; the runs take them in turn.
    pub given: Vec<Given>,
}

/// Most instructions between a store and a load.
pub const LONGEST_WINDOW: u32 = 1 << 14;

/// Most runs.
pub const MOST_RUNS: u32 = 1 << 10;
