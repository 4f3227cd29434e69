//! Output of sampling: records while it runs, and a summary.

use super::plan::SampledEvent;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// An open event.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    /// The event.
    pub event: SampledEvent,
    /// Its ids in records, one per task and CPU.
    pub ids: Vec<u64>,
    /// Ids of each event counted in its group.
    pub counted: Vec<Vec<u64>>,
}

/// Complete records of one ring buffer, in order of writing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// CPU of the ring buffer; `None` for synthesized records.
    pub cpu: Option<u32>,
    /// Number of records.
    pub records: u32,
    /// Number of samples among them.
    pub samples: u32,
    /// Their bytes, headers included.
    pub bytes: Vec<u8>,
}

/// Output of sampling, in this order: events once, then batches.
#[derive(Debug)]
pub enum Output {
    /// The open events, and the ids of the events that track mappings, names and starts.
    Events(Vec<Attached>, Vec<u64>),
    /// Records.
    Records(Batch),
}

/// Receives the output of sampling.
pub type Sink = Box<dyn FnMut(Output) + Send>;

/// A file that was mapped executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// Its path as the process saw it.
    pub path: String,
    /// Its build-id, from its record or the file.
    pub build_id: Vec<u8>,
}

/// A file that was mapped executable and that its path does not lead to from here: it was replaced, or is of another
/// mount namespace.
#[derive(Debug, Clone)]
pub struct ElsewhereFile {
    /// Its build-id.
    pub build_id: Vec<u8>,
    /// The file.
    pub file: Arc<File>,
}

impl PartialEq for ElsewhereFile {
    fn eq(&self, other: &Self) -> bool {
        self.build_id == other.build_id
    }
}

/// Summary of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Samples.
    pub samples: u64,
    /// Samples and other records that the kernel had no room for.
    pub lost: u64,
    /// Times the kernel throttled an event.
    pub throttled: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// CPU time of this process during it: all threads, user and system.
    pub cpu: Duration,
    /// Wall time.
    pub wall: Duration,
    /// Files with code that were mapped.
    pub files: Vec<MappedFile>,
    /// Files in `files` that their paths do not lead to.
    pub elsewhere: Vec<ElsewhereFile>,
    /// Notes that a report must show.
    pub notes: Vec<String>,
}

impl Summary {
    /// CPU time of this process as a share of one CPU; `None` if no time passed.
    pub fn overhead(&self) -> Option<f64> {
        let wall = self.wall.as_secs_f64();
        (wall > 0.0).then(|| self.cpu.as_secs_f64() / wall)
    }
}
