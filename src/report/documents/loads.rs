//! Recorded samples of loads and stores: the document `tdtool.loads/1`. Addresses of code and static data are
//! p_vaddr, `0x…`; those of cache lines are addresses in memory. Shares are from 0 to 1.
//!
//! | file | concern |
//! |---|---|
//! | `access` | sampled loads and stores |
//! | `levels` | what served them |
//! | `data` | the variables, mappings and members that they access |
//! | `lines` | cache lines that several threads access |
//! | `code` | critical loads, hard branches, misses of the instruction cache |

mod access;
mod code;
mod data;
mod levels;
mod lines;

use serde::{Deserialize, Serialize};

pub use access::{BlockOf, LoadRow, LoopOf, VariableOf};
pub use code::{
    BranchRow, BranchesRow, CodeMissRow, CriticalRow, ParallelOf, PathRow, ShareOf, SiteRow,
};
pub use data::{FieldRow, MemberRow, VariableKind, VariableRow};
pub use levels::LevelsRow;
pub use lines::{LineAccessRow, LineRow};

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.loads/1";

/// Load samples of recordings; `event` in rows is the event's number in `events`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Loads {
    /// [`SCHEMA`].
    pub schema: String,
    /// The recordings.
    pub sources: Vec<String>,
    /// Sampled events with loads or stores.
    pub events: Vec<EventRow>,
    /// Sampled loads, those with the largest share first.
    pub loads: Vec<LoadRow>,
    /// Sampled stores, likewise.
    pub stores: Vec<LoadRow>,
    /// Variables and mappings that were accessed, those with the largest share first.
    pub variables: Vec<VariableRow>,
    /// Members of structures, by the operands of loads and stores, those with the largest share first.
    #[serde(default)]
    pub fields: Vec<FieldRow>,
    /// Cache lines that several threads access, one of which writes; those found modified in another core's
    /// cache most often first.
    pub lines: Vec<LineRow>,
    /// Loads that miss the last cache often, and that a hardware prefetcher does not follow.
    pub critical: Vec<CriticalRow>,
    /// Branches that are mispredicted often.
    pub hard_branches: Vec<BranchRow>,
    /// Branch stacks that executions and trips are from, if recorded.
    pub branches: Vec<BranchesRow>,
    /// Lines of code that missed the instruction cache, by recordings of such misses with branch stacks.
    pub code_misses: Vec<CodeMissRow>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// Base of the shares of an event's rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shares {
    /// Σ latency × period.
    Latency,
    /// Σ period.
    #[default]
    Samples,
}

/// An event with samples of loads or stores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// Its number: over all recordings, in their order.
    pub event: usize,
    /// Its recording.
    pub source: String,
    /// perf's name for it.
    pub name: String,
    /// Samples of loads.
    pub loads: u64,
    /// Samples of stores.
    pub stores: u64,
    /// Other samples: software prefetches, and instructions that access no memory.
    pub others: u64,
    /// Latencies below this many cycles are not sampled.
    pub least_latency: Option<u64>,
    /// Which part of the loads is sampled, and what that distorts.
    pub bias: Vec<String>,
    /// Base of the shares.
    pub shares: Shares,
    /// Samples whose address may be that of a later instruction.
    pub inexact: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency of its loads in cycles.
    pub latency_mean: Option<f64>,
}
