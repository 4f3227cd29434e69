//! Recorded samples of loads and stores: the document `tdtool.loads/1`. Addresses of code and static data are
//! p_vaddr, `0x…`; those of cache lines are addresses in memory. Shares are from 0 to 1.

use serde::{Deserialize, Serialize};

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.loads/1";

/// What the load samples of recordings tell; `event` in rows is the event's number in `events`.
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
    /// What executions and trips are from, if a recording has branch stacks.
    pub branches: Vec<BranchesRow>,
    /// Lines of code that missed the instruction cache, by recordings of such misses with branch stacks.
    pub code_misses: Vec<CodeMissRow>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
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
    /// What shares are of: `latency` (Σ latency × period) or `samples` (Σ period).
    pub shares: String,
    /// Samples whose address may be that of a later instruction.
    pub inexact: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency of its loads in cycles.
    pub latency_mean: Option<f64>,
}

/// Samples by what served the access; those without a level are in none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelsRow {
    /// A line that was on its way (line fill buffer): a late hit.
    pub lfb: u64,
    /// L1 cache.
    pub l1: u64,
    /// L2 cache.
    pub l2: u64,
    /// L3 cache.
    pub l3: u64,
    /// Memory of the own node.
    pub ram: u64,
    /// Memory of another node.
    pub remote_ram: u64,
    /// A cache of another core complex or node.
    pub remote_cache: u64,
    /// Something else, or not known to the hardware.
    pub other: u64,
}

/// A sampled load or store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Event.
    pub event: usize,
    /// Its module; empty outside all known mappings.
    pub module: String,
    /// Its address.
    pub address: String,
    /// Share of the event's loads or stores, by `shares` of the event.
    pub share: f64,
    /// Samples.
    pub samples: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
    /// The median.
    pub latency_p50: Option<u32>,
    /// 90 % are not longer.
    pub latency_p90: Option<u32>,
    /// 99 % are not longer.
    pub latency_p99: Option<u32>,
    /// Its function, if known.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// The instruction, in Intel syntax.
    pub instruction: Option<String>,
    /// Its basic block.
    pub block: Option<BlockOf>,
    /// The loops around it, the innermost first.
    pub loops: Vec<LoopOf>,
    /// How its addresses are made in the innermost loop, from the code: `constant`, `stride`, `pointer_chase`,
    /// `chase_offset`, `indirect`, `indirect_delta`, `complex`, `irregular`; absent outside loops.
    pub class: Option<String>,
    /// The same in words, with strides and other loads.
    pub pattern: Option<String>,
    /// Instructions of the innermost loop that compute its address.
    pub slice: Option<Vec<String>>,
    /// Executions in the whole run, estimated from a recording of branches.
    pub executions: Option<f64>,
    /// Of the samples with a known translation: those that walked the page tables.
    pub tlb_walks: Option<u64>,
    /// Those that hit the second TLB, where the hardware says so.
    pub tlb_second: Option<u64>,
    /// Locked (atomic) accesses.
    pub locked: u64,
    /// Lines that another core had, unmodified.
    pub snoop_hits: u64,
    /// Lines that another core had, modified.
    pub snoop_modified: u64,
    /// What it accesses, the most sampled first.
    pub variables: Vec<VariableOf>,
    /// Its operand in the source (`node->next`), by DWARF.
    #[serde(default)]
    pub field: Option<String>,
    /// The structure that has it: `struct node`.
    #[serde(default, rename = "type")]
    pub of: Option<String>,
    /// Its path in that structure, …
    #[serde(default)]
    pub member: Option<String>,
    /// … and its offset there.
    #[serde(default)]
    pub offset: Option<u64>,
    /// Why `field` is not known.
    #[serde(default)]
    pub field_unknown: Option<String>,
}

/// A member of a structure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldRow {
    /// Event.
    pub event: usize,
    /// The structure: `struct node`.
    #[serde(rename = "type")]
    pub of: String,
    /// Its path there: `next`.
    pub member: String,
    /// Its offset there.
    pub offset: u64,
    /// Share of the event's loads (of its stores, if it has no loads), by `shares` of the event.
    pub share: f64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
}

/// A member of a variable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberRow {
    /// With the variable: `table.buckets[].next`.
    pub name: String,
    /// Share of the event's accesses, by `shares` of the event.
    pub share: f64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
}

/// A basic block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockOf {
    /// First address.
    pub start: String,
    /// Address after its last instruction.
    pub end: String,
}

/// A loop around a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopOf {
    /// First address of its first block.
    pub head: String,
    /// Mean trips, from a recording of branches.
    pub trips: Option<f64>,
    /// Their mean is at least this, as few ends are recorded.
    pub trips_at_least: Option<u64>,
    /// Class of the load's addresses from one iteration of this loop to the next.
    pub class: Option<String>,
    /// The same in words.
    pub pattern: Option<String>,
}

/// A variable that a load accesses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariableOf {
    /// Its name with the member (`table.buckets[].next`), that of its section or mapping, `heap`, `stack`, or
    /// `unknown`.
    pub name: String,
    /// Samples.
    pub samples: u64,
}

/// A variable or mapping.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariableRow {
    /// Event.
    pub event: usize,
    /// Its module; empty for what is in none.
    pub module: String,
    /// Its name, that of its section or mapping, `heap`, `stack`, or `unknown`.
    pub name: String,
    /// `variable`, `section`, `heap` (also of mappings without a file), `stack`, `mapping` or `unknown`.
    pub kind: String,
    /// Its first address, of variables and sections.
    pub address: Option<String>,
    /// Bytes.
    pub size: Option<u64>,
    /// Share of the event's accesses, by `shares` of the event.
    pub share: f64,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write.
    pub stores: u64,
    /// Samples by what served them.
    pub levels: LevelsRow,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
    /// Its members by DWARF, those with the largest share first.
    #[serde(default)]
    pub members: Vec<MemberRow>,
}

/// A cache line that several threads access.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LineRow {
    /// Recording, by its index in `sources`: lines are found over all its events.
    pub recording: usize,
    /// Its address in memory.
    pub address: String,
    /// Process; absent for kernel memory and physical addresses.
    pub process: Option<u32>,
    /// `false`: threads access different bytes (false sharing); `true`: the same bytes; `unknown`: other
    /// accesses were not sampled.
    pub sharing: String,
    /// What is there, if known.
    pub variables: Vec<String>,
    /// Samples that read.
    pub loads: u64,
    /// Samples that write: stores and locked accesses.
    pub writes: u64,
    /// Samples that found the line modified in another core's cache (HITM).
    pub modified: u64,
    /// Of those, in a cache of another node.
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
    /// Of those, in a cache of another node.
    #[serde(default)]
    pub modified_remote: u64,
    /// Mean latency in cycles.
    #[serde(default)]
    pub latency_mean: Option<f64>,
    /// What is there in the source, by DWARF: `counters.hits`, `node->next`.
    #[serde(default)]
    pub field: Option<String>,
    /// Module of the instruction.
    pub module: String,
    /// The instruction.
    pub address: String,
    /// Its function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
}

/// A critical load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CriticalRow {
    /// Event.
    pub event: usize,
    /// Its module.
    pub module: String,
    /// Its address.
    pub address: String,
    /// Its function.
    pub function: Option<String>,
    /// Its share of all executed loads, or of all sampled ones.
    pub executed: f64,
    /// `executions` (from a recording of branches) or `samples`.
    pub executed_of: String,
    /// Share of its executions, or samples, that missed the last cache.
    pub misses: f64,
    /// `executions` or `samples`.
    pub misses_of: String,
    /// Whether `misses` is the least that it can be: the event counts randomly selected loads.
    #[serde(default)]
    pub misses_at_least: bool,
    /// Its class, in the innermost loop in which it is irregular; absent where not known.
    pub class: Option<String>,
    /// First address of the head of that loop.
    #[serde(default)]
    pub loop_head: Option<String>,
    /// The instructions of that loop that compute its address.
    pub slice: Option<Vec<String>>,
    /// The longest path through them to the loaded value.
    #[serde(default)]
    pub critical_path: Option<PathRow>,
    /// Why that is not known.
    #[serde(default)]
    pub path_unknown: Option<String>,
    /// Misses under way at the same time, on average: as recorded (IBS), else in the innermost loop over its
    /// cycles (Σ latency of misses / cycles), which is the least it can be; absent: not known.
    pub parallel: Option<f64>,
    /// `recorded` or `cycles`.
    pub parallel_of: Option<String>,
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
    pub address: String,
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
    pub slice: Option<Vec<String>>,
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
    pub instructions: Vec<String>,
    /// Sum of their latencies: at most, …
    pub cycles: f64,
    /// … and at least, where tables state a range.
    pub cycles_least: f64,
    /// Those of them that are loads with the average latency of at least ten samples, which are from the event's least
    /// latency on; other loads are taken to hit the first cache.
    pub sampled: Vec<String>,
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
    pub address: String,
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
    pub address: String,
    /// Its function.
    pub function: Option<String>,
    /// Share of the line's samples that it came before.
    pub coverage: f64,
    /// Mean cycles between it and the miss.
    pub distance: f64,
    /// Missed lines that it comes before: a prefetch of one of them is in vain where another follows.
    pub fan_out: usize,
}
