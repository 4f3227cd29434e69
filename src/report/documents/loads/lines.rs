//! Cache lines that several threads access.

use loads::recorded::Sharing;
use serde::{Deserialize, Serialize};
use tma::Address;

/// A cache line that several threads access.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LineRow {
    /// Recording, by its index in `sources`: lines are found over all its events.
    pub recording: usize,
    /// Its address in memory.
    pub address: Address,
    /// Process; absent for kernel memory and physical addresses.
    pub process: Option<u32>,
    /// Whether threads access the same bytes.
    pub sharing: Sharing,
    /// Variables of the line, if known.
    pub variables: Vec<String>,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write: stores and locked accesses.
    pub writes: u64,
    /// Samples that found the line modified in another core's cache (HITM).
    pub modified: u64,
    /// Samples that found it in a cache of another node.
    #[serde(default)]
    pub modified_remote: u64,
    /// Its share of all such samples of the recording.
    #[serde(default)]
    pub share: Option<f64>,
    /// Threads (CPUs, where samples have no thread).
    pub threads: usize,
    /// By thread, offset and instruction.
    pub accesses: Vec<LineAccessRow>,
}

/// Accesses to a cache line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LineAccessRow {
    /// Thread.
    pub thread: Option<u32>,
    /// Its name.
    pub thread_name: Option<String>,
    /// CPUs that it was on.
    pub cpus: Vec<u32>,
    /// Offset in the line.
    pub offset: u8,
    /// Bytes of the access, if the code is known.
    pub bytes: Option<u8>,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub writes: u64,
    /// Samples that found the line modified in another core's cache.
    pub modified: u64,
    /// Samples that found it in a cache of another node.
    #[serde(default)]
    pub modified_remote: u64,
    /// Mean latency in cycles.
    #[serde(default)]
    pub latency_mean: Option<f64>,
    /// Data of the access in the source, by DWARF: `counters.hits`, `node->next`.
    #[serde(default)]
    pub field: Option<String>,
    /// Module of the instruction.
    pub module: String,
    /// The instruction.
    pub address: Address,
    /// Its function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
}
