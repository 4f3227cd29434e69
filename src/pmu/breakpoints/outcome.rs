//! What was counted.

use std::time::Duration;

/// The counts of a stretch of time of a live process.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// For each site.
    pub counted: Vec<Counted>,
    /// For sites `s` and `a`: hits of both while both were counted.
    pub together: Vec<Vec<Together>>,
    /// Wall time.
    pub wall: Duration,
    /// The signal that ended it.
    pub interrupted: Option<i32>,
}

/// Hits of two sites, the hotter one first, while both were counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Together {
    /// From the start until one of them was counted in windows only.
    pub first: (u64, u64),
    /// Each window after that, in order of time.
    pub windows: Vec<(u64, u64)>,
}

/// How much of the run a site was counted in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Coverage {
    /// None: its file was never mapped, or no breakpoint could be set.
    #[default]
    Never,
    /// From when its file was found mapped, to the end.
    Late,
    /// In windows.
    Windows,
}

/// The count of one site.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    /// Hits while it was counted.
    pub hits: u64,
    /// How much of the run that was.
    pub coverage: Coverage,
    /// Time during which it was counted.
    pub on: Duration,
    /// Time that hits of all sites took meanwhile, in all threads.
    pub slowed: Duration,
}
