//! The contents of a session, without its samples.

use super::counts::{SoftwareCounts, StoredCounts, StoredTable};
use super::samples::SampledEvents;

/// The note of a recording with sampling but without samples.
pub const NO_SAMPLES: &str = "no sample was taken: the run was shorter than the sampling period, or \
     slept; hot code is unknown (try a longer run, or `tdtool record -F 4999`)";

/// The contents of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// [`Chunk::Header`](super::Chunk::Header).
    pub header: serde_json::Value,
    /// [`Chunk::Table`](super::Chunk::Table)s.
    pub tables: Vec<StoredTable>,
    /// [`Chunk::Counts`](super::Chunk::Counts), in order of recording.
    pub counts: Vec<StoredCounts>,
    /// [`Chunk::Software`](super::Chunk::Software), in order of recording.
    pub software: Vec<SoftwareCounts>,
    /// [`Chunk::End`](super::Chunk::End); `None` if the recording was cut off.
    pub end: Option<serde_json::Value>,
    /// [`Chunk::SampledEvents`](super::Chunk::SampledEvents), if samples were recorded;
    /// [`load_recording`](super::load_recording) reads them.
    pub sampled: Option<SampledEvents>,
    /// Number of samples.
    pub samples: u64,
    /// [`Chunk::Machine`](super::Chunk::Machine).
    pub machine: Option<serde_json::Value>,
    /// Limits that a report must state: the file ends early, chunks were skipped.
    pub notes: Vec<String>,
}
