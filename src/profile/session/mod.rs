//! The recorded session file: versioned, checksummed, safe against a cut-off write.
//!
//! A file is a header and then chunks, each with its length and checksums; docs/reference/session.md
//! describes every byte. Chunks are written whole and at once, so that a killed recording keeps
//! everything up to its last chunk. Readers skip kinds they do not know.
//!
//! Payloads are JSON: they describe themselves, so later versions can add keys, and a person
//! can look into a file with ordinary tools. Their size matters little beside what it costs to
//! read counters (a level-3 interval is some 10 KB). Only records of samples are binary: as the
//! kernel wrote them.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | kinds of chunks |
//! | `samples.rs` | those that samples need: events, records, build-ids |
//! | `write.rs`, `read.rs` | chunks, one after the other |
//! | `recording.rs` | the samples of a whole session, for `profile` |

mod read;
mod recording;
mod samples;
mod write;

pub use read::{Reader, load, load_from};
pub use recording::{has_samples, load_recording, recording_from};
pub use samples::{BuildId, RecordBatch, SampledEvent, SampledEvents};
pub use write::SessionWriter;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tma::counts::Counts;

/// First bytes of every session file. The line ends and the control-Z betray transfers in
/// text mode.
pub const MAGIC: [u8; 8] = *b"\x89TDS\r\n\x1a\n";
/// Version of the format this code writes.
pub const VERSION: u32 = 1;
/// Bytes of the file header: magic, version, checksum.
pub const FILE_HEADER: usize = 16;
/// Bytes of a chunk header: kind, length, checksum of the payload, checksum of the header.
pub const CHUNK_HEADER: usize = 20;
/// Longest payload written or read.
pub const LONGEST_CHUNK: u64 = 1 << 30;

/// Of a recording that was sampled without a single sample.
pub const NO_SAMPLES: &str = "no sample was taken: the run was shorter than the time between two \
     samples, or slept; where the time goes is not known (a higher -F, or a longer run)";

/// One chunk.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// What was recorded: machine, command line, options. A free-form JSON object; first chunk.
    Header(serde_json::Value),
    /// A table the counts refer to; before the first counts that do.
    Table(StoredTable),
    /// Counts of one interval and scope.
    Counts(Box<StoredCounts>),
    /// Software counts of one interval and scope.
    Software(SoftwareCounts),
    /// How the recording ended. A free-form JSON object; last chunk.
    End(serde_json::Value),
    /// What is sampled; before the first records.
    SampledEvents(SampledEvents),
    /// Records of one ring, or made when recording began.
    Records(RecordBatch),
    /// Build-ids of the files that were mapped, at the end.
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

/// The text of a table as it was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTable {
    /// Its name.
    pub name: String,
    /// Its TOML text.
    pub text: String,
}

/// Counts and the table their event ids belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredCounts {
    /// Name of the [`StoredTable`].
    pub table: String,
    /// The counts.
    pub counts: Counts,
}

/// Counts that need no PMU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SoftwareCounts {
    /// As [`Counts::scope`].
    pub scope: Option<String>,
    /// As [`Counts::interval`].
    pub interval: Option<(Duration, Duration)>,
    /// By perf's event name; `None` where it could not be had.
    pub values: BTreeMap<String, Option<f64>>,
}

/// A whole session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// [`Chunk::Header`].
    pub header: serde_json::Value,
    /// [`Chunk::Table`]s.
    pub tables: Vec<StoredTable>,
    /// [`Chunk::Counts`], in order of recording.
    pub counts: Vec<StoredCounts>,
    /// [`Chunk::Software`], in order of recording.
    pub software: Vec<SoftwareCounts>,
    /// [`Chunk::End`]; `None` where the recording was cut off.
    pub end: Option<serde_json::Value>,
    /// [`Chunk::SampledEvents`], where samples were recorded; [`load_recording`] reads them.
    pub sampled: Option<SampledEvents>,
    /// How many samples there are.
    pub samples: u64,
    /// [`Chunk::Machine`].
    pub machine: Option<serde_json::Value>,
    /// What a reader of the report must know: the file ends early, chunks were skipped.
    pub notes: Vec<String>,
}

/// Checksum of everything: CRC-32 (IEEE 802.3, as in PNG and zip).
fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
