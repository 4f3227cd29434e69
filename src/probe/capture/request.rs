//! What to capture, and the limits.

use pmu::Command;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A block to capture, and the command that runs it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The command; it may run the program through others.
    pub command: Command,
    /// The program or shared library that contains the block.
    pub image: PathBuf,
    /// The block's first instruction.
    pub place: Place,
    /// Addresses (p_vaddr) of the block, or of all blocks of its loop: inside them it is followed.
    pub region: Vec<Range<u64>>,
    /// The entry to capture.
    pub entry: Entry,
    /// Executions of the loop to capture with [`Entry::Auto`], where it leaves within the limits: the
    /// further ones, at later and later entries.
    pub executions: usize,
    /// Limits.
    pub limits: Limits,
    /// How entries are found.
    pub breakpoints: Breakpoints,
    /// What becomes of the command.
    pub afterwards: Afterwards,
    /// Ends the capture from another thread.
    pub stop: Stop,
}

/// A capture is to end: set from another thread.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the capture.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A place in an ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An address (p_vaddr).
    Address(u64),
    /// An offset in the file.
    Offset(u64),
}

/// Which entry of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Entry {
    /// The 1000th, or the last of the 1st, 10th and 100th if there are fewer. If that is in the middle
    /// of a loop, or its first execution: where the loop starts next, if it does within the limits.
    #[default]
    Auto,
    /// This one, from 1.
    Number(u64),
    /// This one, with which an execution of the loop begins; the further ones follow.
    Start(u64),
}

/// How entries of the block are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Breakpoints {
    /// By debug registers, or by `int3` where those are refused.
    #[default]
    Auto,
    /// By `int3`.
    Int3,
}

/// What becomes of the command after the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Afterwards {
    /// It is killed, with all that it has started.
    #[default]
    Kill,
    /// It continues, and is waited for.
    Continue,
}

/// Limits of a capture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Time until the first entry of the block.
    pub first_entry: Duration,
    /// Time from there to the wanted entry. When it is over, the next entry is captured.
    pub time: Duration,
    /// Time for stepping, for each capture.
    pub stepping: Duration,
    /// Instructions that are stepped.
    pub steps: u64,
    /// Iterations that are stepped.
    pub iterations: u64,
    /// Pages that are read.
    pub pages: usize,
}

impl Default for Limits {
    /// A step takes 10 to 30 µs, so stepping ends by its time or by the iterations.
    fn default() -> Self {
        Self {
            first_entry: Duration::from_secs(60),
            time: Duration::from_secs(10),
            stepping: Duration::from_millis(500),
            steps: 50_000,
            iterations: 256,
            pages: 1024,
        }
    }
}
