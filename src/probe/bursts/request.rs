//! Limits of a recording, and its result.

use super::heap::Heap;
use crate::patch::Unprobed;
use crate::plan::Request;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How much is recorded of each process.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Records per burst.
    pub length: usize,
    /// Most bursts per process. Above it every other burst is dropped, and the rate is halved.
    pub bursts: usize,
    /// Average pause between bursts, in lengths of the last burst.
    pub pause: f64,
}

impl Default for Pace {
    /// At most 128 × 32,768 records of 16 bytes (64 MiB); the gate is open for a fifth of the time.
    fn default() -> Self {
        Self { length: 1 << 15, bursts: 128, pause: 4.0 }
    }
}

/// One execution of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The instruction: index in [`Recorded::observed`].
    pub site: u32,
    /// Index of the register, if several are recorded.
    pub part: u8,
    /// Page number of the stack (lower 32 bits), which tells threads apart.
    pub stack: u32,
    /// The outcome (1: taken), target address, address or value of a load, its latency in ticks, or
    /// the value of a register. Addresses are those in the process.
    pub value: u64,
}

/// Consecutive executions in one process and its forks.
#[derive(Debug, Clone)]
pub struct Burst {
    /// Number of the program image, in order of start.
    pub image: usize,
    /// Whether it has the first execution in the image.
    pub is_first: bool,
    /// Whether it has the last execution in the image.
    pub is_last: bool,
    /// Records in order of execution.
    pub records: Vec<Record>,
    /// Memory maps of the process around that time, latest first, each in order of address; only
    /// with addresses of loads and values of registers.
    pub memory: Vec<Arc<Vec<Region>>>,
    /// Number of calls logged at its begin and end ([`What::Allocated`](crate::plan::What)).
    pub logged: (u64, u64),
}

/// A part of the memory of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its addresses.
    pub range: Range<u64>,
    /// Path of the file, or a name such as `[heap]` and `[stack]`; empty for other anonymous memory.
    pub of: String,
    /// The address of its begin in the file (p_vaddr), of data that the program may write.
    pub in_file: Option<u64>,
}

/// A requested instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Index of its function in the request.
    pub function: usize,
    /// The instruction and what is observed of it.
    pub request: Request,
    /// Why not all executions were observed.
    pub refused: Option<Unprobed>,
}

/// Result of a run.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The requests, without those of unreadable functions.
    pub observed: Vec<Observed>,
    /// Bursts of each image, in order of time.
    pub bursts: Vec<Burst>,
    /// Memory allocated by images with bursts, if requested.
    pub heaps: Vec<Heap>,
    /// By image ([`Burst::image`]) and file: what a process adds to its addresses (p_vaddr); not of several windows.
    pub biases: BTreeMap<(usize, PathBuf), u64>,
    /// The windows of a command's run that it is from; 0 if it is from a whole run, or of a live process.
    pub windows: usize,
    /// From the start of the command or the window to its end.
    pub wall: Duration,
    /// How the command ended.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted the run.
    pub interrupted: Option<i32>,
    /// Threads and processes without the first.
    pub tasks: u32,
    /// Most probes in one process.
    pub probes: usize,
    /// The code of a live process could not be restored; a note says why.
    pub remains: bool,
    /// Further notes for the reader.
    pub notes: Vec<String>,
}

impl Recorded {
    /// Result of a run that a signal interrupted before any record.
    pub fn interrupted(signal: i32) -> Self {
        Self { interrupted: Some(signal), ..Self::default() }
    }

    /// What an image adds to the addresses of a file; `None` if it was not patched there.
    pub fn bias(&self, image: usize, file: &Path) -> Option<u64> {
        self.biases.get(&(image, file.to_owned())).copied()
    }

    /// Adds a later window with the same requests.
    pub fn add(&mut self, later: Self) {
        // Refused is what no window has seen: a file may be mapped late.
        let refused = later.observed.into_iter().map(|one| one.refused);
        for (own, refused) in self.observed.iter_mut().zip(refused) {
            own.refused = if self.windows == 0 { refused } else { own.refused.take().and(refused) };
        }
        self.windows += 1;
        self.bursts.extend(later.bursts);
        self.heaps.extend(later.heaps);
        self.tasks = self.tasks.max(later.tasks);
        self.probes = self.probes.max(later.probes);
        self.remains |= later.remains;
        self.notes.extend(later.notes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::What;

    fn window(refused: Option<Unprobed>, records: u64, tasks: u32) -> Recorded {
        let request = Request { at: 0x10, what: What::Outcome };
        let record = |value| Record { site: 0, part: 0, stack: 0, value };
        let burst = Burst {
            image: 0,
            is_first: false,
            is_last: false,
            records: (0..records).map(record).collect(),
            memory: Vec::new(),
            logged: (0, 0),
        };
        Recorded {
            observed: vec![Observed { function: 0, request, refused }],
            bursts: vec![burst],
            tasks,
            ..Recorded::default()
        }
    }

    /// A file that is mapped between two windows: the request is refused in the first only.
    #[test]
    fn windows_of_the_same_requests_are_one_recording() {
        let mut all = Recorded { observed: window(None, 0, 0).observed, ..Recorded::default() };
        all.add(window(Some(Unprobed::NotMapped), 0, 0));
        assert_eq!(all.observed[0].refused, Some(Unprobed::NotMapped));
        all.add(window(None, 3, 2));
        all.add(window(None, 5, 1));
        assert_eq!(all.observed[0].refused, None);
        let records: Vec<usize> = all.bursts.iter().map(|burst| burst.records.len()).collect();
        assert_eq!((records, all.windows, all.tasks), (vec![0, 3, 5], 3, 2));
    }
}
