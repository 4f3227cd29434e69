//! What sampling produces: records while it runs, and a summary.

use super::plan::SampledEvent;
use std::time::Duration;

/// An event that was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    /// The event.
    pub event: SampledEvent,
    /// Its ids in records, one for each task and CPU.
    pub ids: Vec<u64>,
}

/// Records of one ring, whole and in the order they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The ring's CPU; `None` for records made by ourselves.
    pub cpu: Option<u32>,
    /// How many.
    pub records: u32,
    /// How many of them are samples.
    pub samples: u32,
    /// Their bytes, headers included.
    pub bytes: Vec<u8>,
}

/// What sampling gives while it runs, in this order: events once, then batches.
#[derive(Debug)]
pub enum Output {
    /// What was opened, and the ids of the events that track mappings, names and starts.
    Events(Vec<Attached>, Vec<u64>),
    /// Records.
    Records(Batch),
}

/// Takes what sampling gives.
pub type Sink = Box<dyn FnMut(Output) + Send>;

/// A file that was mapped executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// Its path as the process saw it.
    pub path: String,
    /// Its build-id, as the kernel told or the file has it.
    pub build_id: Vec<u8>,
}

/// What a recording took and gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Samples.
    pub samples: u64,
    /// Samples and other records that the kernel had no room for.
    pub lost: u64,
    /// Times the kernel stopped an event for a while because it came too often.
    pub throttled: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// CPU time of this process meanwhile, all its threads, user and system.
    pub cpu: Duration,
    /// Wall time meanwhile.
    pub wall: Duration,
    /// Files with code that were mapped.
    pub files: Vec<MappedFile>,
    /// What a report must state.
    pub notes: Vec<String>,
}

impl Summary {
    /// CPU time of this process as a share of one CPU; `None` if no time passed.
    pub fn overhead(&self) -> Option<f64> {
        let wall = self.wall.as_secs_f64();
        (wall > 0.0).then(|| self.cpu.as_secs_f64() / wall)
    }
}
