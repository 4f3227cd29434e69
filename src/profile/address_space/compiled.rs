//! Code of just-in-time compilers, as their jitdumps have it: which one is at an address at a time.

use crate::jitdump::Load;
use crate::ranges::RangeMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::vec::IntoIter;

/// Most pieces of code of all jitdumps that a recording names, some 100 bytes each.
pub(super) const MOST: usize = 1 << 21;
/// Most bytes of those jitdumps.
pub(super) const MOST_BYTES: u64 = 4 << 30;

/// The code of all processes.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    /// Whether the recording has the clock of the jitdumps. If not, the last code at an address holds.
    pub is_monotonic: bool,
    /// Jitdumps that cannot be read.
    pub notes: Vec<String>,
    pub(super) processes: HashMap<u32, Process>,
    /// When the next code is loaded, and of which process.
    pub(super) next: BinaryHeap<Reverse<(u64, u32)>>,
    /// Pieces read so far, and bytes of files.
    pub(super) read: usize,
    pub(super) bytes: u64,
}

/// Compiled code in memory.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub start: u64,
    /// Offset of the code in the jitdump.
    pub offset: u64,
    pub module: usize,
}

/// The code of a process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) path: String,
    pub(super) code: RangeMap<Piece>,
    pub(super) module: usize,
    /// Loads still to come.
    pub(super) later: IntoIter<Load>,
}

impl Process {
    /// Loads what is there at a time.
    pub(super) fn advance(&mut self, time: u64) {
        while let Some(load) = self.later.as_slice().first().copied().filter(|l| l.time <= time) {
            self.later.next();
            let region = Piece { start: load.start, offset: load.code, module: self.module };
            self.code.insert(load.start, load.start.saturating_add(load.size), region);
        }
    }

    pub(super) fn next(&self) -> Option<u64> {
        self.later.as_slice().first().map(|load| load.time)
    }
}

impl Compiled {
    /// A process runs another program.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    pub(super) fn is_later(&self, time: u64) -> bool {
        self.next.peek().is_none_or(|Reverse((next, _))| *next > time)
    }
}
