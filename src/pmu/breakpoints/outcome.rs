//! What was counted.

use crate::Exit;
use std::time::Duration;

/// The counts of a run, or of a stretch of time of a live process.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// For each site.
    pub counted: Vec<Counted>,
    /// For sites `s` and `a`: hits of both while both were counted.
    pub together: Vec<Vec<Together>>,
    /// For each site too hot to be counted throughout a traced command: its windows.
    pub sampled: Vec<Option<Sampled>>,
    /// Wall time.
    pub wall: Duration,
    /// The signal that ended it.
    pub interrupted: Option<i32>,
    /// How the command ended; `None` for a live process, and if unknown.
    pub exit: Option<Exit>,
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
    /// From the first instruction of the program to its end.
    Whole,
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

/// Hits between two entries of a reference point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Entries of the site.
    pub hits: u64,
    /// Entries of the reference point.
    pub reference_entries: u64,
    /// Entries of the reference point in the stratum of this window.
    pub stratum: u64,
    /// Entries in the run per entry in the stratum: 1 if the reference point was counted throughout.
    pub weight: f64,
}

/// Why windows do not represent the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// There is no reference point.
    NoReference,
    /// Between two entries of the reference point there were too many hits to count: this many.
    WindowTooLong(u64),
    /// The windows of the reference point itself are unusable.
    ReferenceUnusable,
}

/// A site counted in windows between entries of a reference point.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The site that is the reference point.
    pub reference: usize,
    /// Entries of both while both were counted throughout.
    pub first: (u64, u64),
    /// The windows, in the order in which they ended.
    pub windows: Vec<Window>,
    /// Why the windows are unusable, if they are.
    pub unusable: Option<Unusable>,
}
