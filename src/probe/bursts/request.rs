//! How much is recorded, and what was.

use super::heap::Heap;
use crate::patch::Unprobed;
use crate::plan::Wish;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// How much is recorded.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Records of a burst.
    pub length: usize,
    /// Most bursts that are kept of a process. If there are more, every other one is dropped, and from
    /// then on half as many are taken.
    pub bursts: usize,
    /// A gate stays closed this many times as long as the last burst took, on average.
    pub pause: f64,
}

impl Default for Pace {
    /// At most 128 × 32,768 records of 16 bytes, 64 MiB; a fifth of the time.
    fn default() -> Self {
        Self { length: 1 << 15, bursts: 128, pause: 4.0 }
    }
}

/// One execution of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Which one: index in [`Recorded::observed`].
    pub site: u32,
    /// Of several registers, which one.
    pub part: u8,
    /// Number of the page of the stack, its lower 32 bits: threads have stacks of their own.
    pub stack: u32,
    /// The outcome (1 is taken); the address of the target, or that a load loads from, in the process; what
    /// is loaded; the ticks that it took; or what a register holds.
    pub value: u64,
}

/// Consecutive executions in one process and those forked from it.
#[derive(Debug, Clone)]
pub struct Burst {
    /// Which program image, in order of start.
    pub image: usize,
    /// Whether it begins with the first execution in that image.
    pub is_first: bool,
    /// Whether it ends with the last one.
    pub is_last: bool,
    /// The records, in the order of execution.
    pub records: Vec<Record>,
    /// Where the memory of the process was about then, each time in order of address, the latest first;
    /// with values of registers only.
    pub memory: Vec<Arc<Vec<Region>>>,
    /// Calls that had been logged before it began, and by the time that it was over
    /// ([`What::Allocated`](crate::plan::What)).
    pub logged: (u64, u64),
}

/// A part of the memory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its addresses.
    pub range: Range<u64>,
    /// Path of the file, or a name such as `[heap]` and `[stack]`; empty for other anonymous memory.
    pub of: String,
}

/// A wished instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Its function, in the order of the request.
    pub function: usize,
    /// The instruction and what was observed of it.
    pub wish: Wish,
    /// Why not all of its executions were.
    pub refused: Option<Unprobed>,
}

/// What one run gave.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The wishes. Those of a function that cannot be read are missing.
    pub observed: Vec<Observed>,
    /// The bursts of each image, in order of time.
    pub bursts: Vec<Burst>,
    /// The memory that was given to images with bursts, if that was wished.
    pub heaps: Vec<Heap>,
    /// From the start of the command or the window to its end.
    pub wall: Duration,
    /// How it ended.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    /// Threads and processes, beside the first.
    pub tasks: u32,
    /// Most probes in one process.
    pub probes: usize,
    /// The code of a live process could not be put back as it was; a note says why.
    pub remains: bool,
    /// What else must be known.
    pub notes: Vec<String>,
}

impl Recorded {
    /// Of a run that a signal has interrupted before anything was recorded.
    pub fn interrupted(signal: i32) -> Self {
        Self { interrupted: Some(signal), ..Self::default() }
    }
}
