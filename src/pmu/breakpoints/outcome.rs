//! What was counted.

use crate::Exit;
use std::time::Duration;

/// What a run or window gave.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// For each site.
    pub counted: Vec<Counted>,
    /// For sites `s` and `a`: hits of both while both were counted.
    pub together: Vec<Vec<Together>>,
    /// For each site that was too hot to be counted throughout: its turns, of a traced command.
    pub sampled: Vec<Option<Sampled>>,
    /// Wall time.
    pub wall: Duration,
    /// A signal ended it.
    pub interrupted: Option<i32>,
    /// How the command ended; `None` of a live process, and where nobody can tell.
    pub exit: Option<Exit>,
}

/// Hits of two places, the hotter one first, while both were counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Together {
    /// From the start until one of them was counted in windows alone.
    pub first: (u64, u64),
    /// Each window after that, in order of time.
    pub windows: Vec<(u64, u64)>,
}

/// How much of the run a place was counted in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Known {
    /// Its file was never mapped, or no breakpoint could be set.
    #[default]
    Never,
    /// From the first instruction of the program to its end.
    Whole,
    /// From when its file was found mapped, to the end.
    Late,
    /// In windows.
    Windows,
}

/// What is known of one place.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    /// Hits while it was counted.
    pub hits: u64,
    /// How much of the run that was.
    pub known: Known,
    /// Time during which it was counted.
    pub on: Duration,
    /// What the hits of all places took meanwhile, on whatever threads they came.
    pub slowed: Duration,
}

/// One window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Entries of the hot place.
    pub hits: u64,
    /// Whole turns of the colder one.
    pub turns: u64,
    /// Turns in its stratum.
    pub size: u64,
    /// Turns of the run that each turn of the stratum stands for: 1 where all were counted.
    pub weight: f64,
}

/// Why what was sampled does not stand for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoiled {
    /// No colder place is known.
    Alone,
    /// One turn took too many hits to be counted to its end: so many.
    Long(u64),
    /// The colder place is spoiled itself.
    Clock,
}

/// A place in turns of a colder one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The colder one.
    pub clock: usize,
    /// Entries of both while both were counted throughout.
    pub first: (u64, u64),
    /// In the order in which they ended.
    pub windows: Vec<Window>,
    /// Why they say nothing.
    pub spoiled: Option<Spoiled>,
}
