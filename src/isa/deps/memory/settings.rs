//! Parameters of the search for memory dependencies, and initial values.

/// Known values at the start of the first iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitialValues {
    /// General-purpose registers by encoding number.
    pub registers: [Option<u64>; 16],
    /// Address and value of eight-byte words.
    pub memory: Vec<(u64, u64)>,
    /// Value of all other aligned eight-byte words.
    pub fill: Option<u64>,
}

/// Parameters of the search.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Entries of the reorder buffer: the maximum distance of a store and a dependent load, in
    /// instructions.
    pub window: u32,
    /// Number of runs, each with different random values.
    pub runs: u32,
    /// Sets of initial values, which the runs use in rotation.
    pub initial_values: Vec<InitialValues>,
}

/// Limit on [`Settings::window`].
pub const MAX_WINDOW: u32 = 1 << 14;

/// Limit on [`Settings::runs`].
pub const MAX_RUNS: u32 = 1 << 10;
