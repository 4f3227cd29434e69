//! Recorded samples of loads and stores: the document `tdtool.loads/1`, with critical loads, hard branches and misses
//! of the instruction cache. What the samples access is in `accessed`. Addresses of code and static data are p_vaddr,
//! `0x…`; those of cache lines are addresses in memory. Shares are from 0 to 1.

mod accessed;

use loads::class::Kind;
use serde::{Deserialize, Serialize};
use tma::Address;

pub use accessed::{
    BlockOf, FieldRow, LevelsRow, LineAccessRow, LineRow, LoadRow, LoopOf, MemberRow, VariableKind,
    VariableOf, VariableRow,
};

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

/// Base of a share of a critical load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShareOf {
    /// Executions, from a recording of branches.
    Executions,
    /// Sampled ones.
    #[default]
    Samples,
}

/// Where the number of misses under way is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParallelOf {
    /// The hardware records it (IBS).
    Recorded,
    /// Latencies of misses over the cycles of the innermost loop.
    Cycles,
}

/// A critical load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CriticalRow {
    /// Event.
    pub event: usize,
    /// Its module.
    pub module: String,
    /// Its address.
    pub address: Address,
    /// Its function.
    pub function: Option<String>,
    /// Its share of all executed loads, or of all sampled ones.
    pub executed: f64,
    /// Base of `executed`.
    pub executed_of: ShareOf,
    /// Share of its executions, or samples, that missed the last cache.
    pub misses: f64,
    /// Base of `misses`.
    pub misses_of: ShareOf,
    /// Whether `misses` is the least that it can be: the event counts randomly selected loads.
    #[serde(default)]
    pub misses_at_least: bool,
    /// Its class, in the innermost loop in which it is irregular; absent where not known.
    pub class: Option<Kind>,
    /// First address of the head of that loop.
    #[serde(default)]
    pub loop_head: Option<Address>,
    /// The instructions of that loop that compute its address.
    pub slice: Option<Vec<Address>>,
    /// The longest path through them to the loaded value.
    #[serde(default)]
    pub critical_path: Option<PathRow>,
    /// Why that is not known.
    #[serde(default)]
    pub path_unknown: Option<String>,
    /// Misses under way at the same time, on average; by cycles (Σ latency of misses / cycles) the least it can be;
    /// absent: not known.
    pub parallel: Option<f64>,
    /// Source of `parallel`.
    pub parallel_of: Option<ParallelOf>,
    /// Whether it is known to be irregular; `false`: critical only if it is.
    pub certain: bool,
}

/// A branch that is mispredicted often.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BranchRow {
    /// Event.
    pub event: usize,
    /// Its module.
    pub module: String,
    /// Its address.
    pub address: Address,
    /// Its function.
    pub function: Option<String>,
    /// Recorded executions that took it and tell their prediction.
    pub taken: u64,
    /// Mispredicted ones of them.
    pub mispredicted: u64,
    /// Executions of the block that it ends, where known: those that are not taken, too.
    #[serde(default)]
    pub executions: Option<u64>,
    /// Share of the taken ones.
    pub share: f64,
    /// Share of all executions, where these are known: at least this, as only branches that are taken are recorded. If
    /// it is known, it decides whether the branch is hard, else `share`.
    #[serde(default)]
    pub share_of_executions: Option<f64>,
    /// The instructions of its innermost loop that its condition is computed by.
    #[serde(default)]
    pub slice: Option<Vec<Address>>,
    /// The longest path through them.
    #[serde(default)]
    pub critical_path: Option<PathRow>,
    /// Why they are not known.
    #[serde(default)]
    pub path_unknown: Option<String>,
}

/// The longest path of latencies through a slice. A slice is walked back over the iterations; each instruction is in it
/// once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathRow {
    /// Its instructions, that which waits for the others last.
    pub instructions: Vec<Address>,
    /// Sum of their latencies, at most.
    pub cycles: f64,
    /// Sum of their latencies, at least, where tables state a range.
    pub cycles_least: f64,
    /// Loads among them with the mean latency of at least ten samples, which are from the event's least latency on;
    /// other loads are taken to hit the first cache.
    pub sampled: Vec<Address>,
    /// Where the other latencies come from: the table of the recorded processor, or `assumed`.
    pub latencies: String,
}

/// An event with branch stacks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BranchesRow {
    /// Its number: over all recordings, in their order.
    pub event: usize,
    /// Its recording.
    pub source: String,
    /// perf's name for it.
    pub name: String,
    /// Samples with branches.
    pub samples: u64,
    /// Loads executed in the whole run, estimated; absent if the event's periods do not tell.
    pub executed_loads: Option<f64>,
}

/// A line of code that missed the instruction cache or its TLB.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CodeMissRow {
    /// Event.
    pub event: usize,
    /// perf's name for it.
    pub name: String,
    /// Its module.
    pub module: String,
    /// Its first byte.
    pub address: Address,
    /// The function of its first sample.
    pub function: Option<String>,
    /// Samples.
    pub samples: u64,
    /// Share of the event's samples.
    pub share: f64,
    /// Samples whose branch stack reaches back far enough for a site; 0 if it has no cycles.
    pub reached: u64,
    /// Blocks that ran 27 to 200 cycles before, where a prefetch could be: those before most misses first.
    pub sites: Vec<SiteRow>,
}

/// Where a prefetch of a line of code could be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteRow {
    /// Module of the block.
    pub module: String,
    /// Its first address.
    pub address: Address,
    /// Its function.
    pub function: Option<String>,
    /// Share of the line's samples that it came before.
    pub coverage: f64,
    /// Mean cycles between it and the miss.
    pub distance: f64,
    /// Missed lines that it comes before: a prefetch of one of them is in vain where another follows.
    pub fan_out: usize,
}
