//! How often chosen places of a program are reached, by execute breakpoints.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | what to count and what comes out of it |
//! | `run.rs` | a run of a command, stopped at its exec, or a window of a live process |
//! | `place.rs` | places of files → addresses of a process |
//! | `follow.rs` | a command that is traced: its processes and threads from birth to end |
//! | `turns.rs` | what is too hot is counted in whole turns of a colder place, exactly |
//! | `walk.rs` | which turns those are |
//! | `tally.rs` | of a live process: counting in windows of time |
//! | `cost.rs` | what one hit costs here |
//!
//! Each hit costs a debug exception: microseconds. A place that is reached millions of times is
//! therefore counted at the start of a run, and then in windows all over the rest of it; how often
//! it is reached in that rest follows from a colder place that is counted throughout.
//!
//! Of a command windows are whole turns of the colder place, chosen by its count beforehand: the
//! thread is stopped at the entry that a window begins with, and at the one behind its end, so
//! that the hits between are exact. Of a live process, which is never stopped, windows are of time.

mod cost;
mod follow;
mod place;
mod run;
mod tally;
mod turns;
mod walk;

pub use cost::cost;
pub use run::{of_command, of_process};
pub use tally::{Counted, Known};
pub use turns::{Sampled, Spoiled, Window, turns_at_once};

use crate::Exit;
use std::time::Duration;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Site {
    /// Path of the file as the kernel names it.
    pub path: String,
    /// Offset in the file.
    pub offset: u64,
}

/// What to count.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// At most four places.
    pub sites: &'a [Site],
    /// For each of them, the colder ones around it, the nearest first.
    pub around: &'a [Vec<usize>],
    /// For each of them, if it is known beforehand: of how many of its entries one window is to be.
    pub strides: &'a [Option<u64>],
    /// How much it may cost.
    pub limits: Limits,
    /// What a hit costs.
    pub cost: Duration,
}

/// How much counting a place may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Hits at the start of a run after which a place is counted in windows alone.
    pub first: u64,
    /// The same of a place without a colder one around it: it is counted throughout or not at all.
    pub alone: u64,
    /// Hits in a window.
    pub window: u64,
    /// Longest window.
    pub longest: Duration,
    /// Mean time between windows.
    pub pause: Duration,
    /// Time that windows of whole turns may take, of each clock in a thread, where their number was
    /// planned.
    pub turns: Duration,
}

/// At some 9 µs a hit (measured on a virtual machine; bare metal takes about one): half a second at
/// the start, then a sixth of the time, or two seconds. Windows are short so that there are many of them: how much
/// they differ is what the error comes from.
impl Default for Limits {
    fn default() -> Self {
        Self {
            first: 50_000,
            alone: 500_000,
            window: 3_000,
            longest: Duration::from_millis(100),
            pause: Duration::from_millis(150),
            turns: Duration::from_secs(2),
        }
    }
}

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
