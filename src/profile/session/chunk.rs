//! Chunks by kind.

use super::counts::{SoftwareCounts, StoredCounts, StoredTable};
use super::samples::{BuildId, RecordBatch, SampledEvents};

/// One chunk.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// Machine, command line, options. A free-form JSON object; first chunk.
    Header(serde_json::Value),
    /// A table that counts refer to; before those counts.
    Table(StoredTable),
    /// Counts of one interval and scope.
    Counts(Box<StoredCounts>),
    /// Software counts of one interval and scope.
    Software(SoftwareCounts),
    /// How the recording ended. A free-form JSON object; last chunk.
    End(serde_json::Value),
    /// The sampled events; before the first records.
    SampledEvents(SampledEvents),
    /// Records of one ring buffer, or synthesized at the start.
    Records(RecordBatch),
    /// Build-ids of mapped files, at the end.
    BuildIds(Vec<BuildId>),
    /// Kernel, architecture, host. A free-form JSON object.
    Machine(serde_json::Value),
}

impl Chunk {
    /// Number of the kind in the file.
    pub fn kind(&self) -> u32 {
        match self {
            Chunk::Header(_) => 1,
            Chunk::Table(_) => 2,
            Chunk::Counts(_) => 3,
            Chunk::Software(_) => 4,
            Chunk::End(_) => 5,
            Chunk::SampledEvents(_) => 6,
            Chunk::Records(_) => 7,
            Chunk::BuildIds(_) => 8,
            Chunk::Machine(_) => 9,
        }
    }
}
