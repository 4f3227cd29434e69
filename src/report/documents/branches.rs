//! Recorded branches: the document `tdtool.branches/1`. Addresses are p_vaddr, `0x…`.

pub use branches::stacks::Skipped;
use serde::{Deserialize, Serialize};
use tma::Address;

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.branches/1";

/// Branch stacks of a recording; `event` in rows is the number of the event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Branches {
    /// [`SCHEMA`].
    pub schema: String,
    /// The recording.
    pub source: String,
    /// Sampled events with branch stacks.
    pub events: Vec<EventRow>,
    /// Taken branches, the most frequent first.
    pub edges: Vec<EdgeRow>,
    /// Straight code between branches, the most frequent first.
    pub ranges: Vec<RangeRow>,
    /// Blocks of known functions, the most frequent first.
    pub blocks: Vec<BlockRow>,
    /// Sampled instructions, the most frequent first.
    pub instructions: Vec<InstructionRow>,
    /// Loops by back edge, the most frequent first.
    pub loops: Vec<LoopRow>,
    /// Calls and jumps between functions, the most frequent first.
    pub calls: Vec<CallRow>,
    /// Indirect jumps and calls, the most frequent first.
    pub indirect: Vec<IndirectRow>,
    /// The modules of the rows.
    pub modules: Vec<ModuleRow>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// Its number over all recordings.
    pub event: usize,
    /// Its recording.
    pub source: String,
    /// perf's name for it, or what the branches of a trace or of counts are.
    pub name: String,
    /// Samples with branches; absent of traces and counts.
    pub samples: Option<u64>,
    /// Recorded branches, skipped ones included.
    pub entries: u64,
    /// Entries that are not used.
    pub skipped: Skipped,
    /// Entries with a known end, by module, most first.
    #[serde(default)]
    pub modules: Vec<ModuleEntries>,
    /// Whether entries have cycles.
    pub has_cycles: bool,
    /// Whether entries tell if they were mispredicted.
    pub has_predictions: bool,
    /// How the choice of samples distorts the counts.
    pub bias: String,
}

/// Recorded branches of a module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModuleEntries {
    /// Module of the branches, of their targets where that is not known: as in [`EdgeRow`].
    pub module: String,
    /// How many were recorded.
    pub entries: u64,
}

/// Kind of a branch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BranchKind {
    /// A conditional jump.
    Conditional,
    /// An unconditional jump.
    Jump,
    /// A jump whose target is in a register or in memory.
    #[serde(rename = "indirect jump")]
    IndirectJump,
    /// A call.
    Call,
    /// A call whose target is in a register or in memory.
    #[serde(rename = "indirect call")]
    IndirectCall,
    /// A return.
    Return,
    /// Any other.
    #[default]
    Other,
}

shown_as_written!(BranchKind);

impl BranchKind {
    /// Whether it is a call.
    pub fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::IndirectCall)
    }

    /// Whether its target is in a register or in memory.
    pub fn is_indirect(self) -> bool {
        matches!(self, Self::IndirectJump | Self::IndirectCall)
    }
}

/// A taken branch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeRow {
    /// Event.
    pub event: usize,
    /// Module of the branch; of its target where that of the branch is not known.
    pub module: String,
    /// The branch; absent outside all known mappings.
    pub from: Option<Address>,
    /// Its target.
    pub to: Option<Address>,
    /// Module of the target, where it is another.
    pub to_module: Option<String>,
    /// Function of the branch.
    pub from_function: Option<String>,
    /// Function of the target.
    pub to_function: Option<String>,
    /// `conditional`, `jump`, `indirect jump`, `call`, `indirect call`, `return` or `other`; absent
    /// where the code is not known.
    pub kind: Option<BranchKind>,
    /// How often it was taken.
    pub count: u64,
    /// Share of all entries of the event, 0 to 1.
    pub share: f64,
    /// How often it was mispredicted, if the recording tells.
    pub mispredicted: Option<u64>,
    /// How often it was marked as predicted or mispredicted.
    #[serde(default)]
    pub marked: u64,
    /// Executions of the block that the branch ends, where known: those that are not taken, too.
    #[serde(default)]
    pub executions: Option<u64>,
    /// Whether the branch, with all its targets, is hard to predict: over 15 % of its executions, else of the
    /// taken ones, were mispredicted (the lower end of the 95 % interval).
    pub hard: bool,
    /// Cycles since the branch before: mean.
    pub cycles_mean: Option<f64>,
    /// Median of these cycles.
    pub cycles_median: Option<f64>,
}

/// Straight code between two branches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeRow {
    /// Event.
    pub event: usize,
    /// Its module.
    pub module: String,
    /// First address.
    pub first: Address,
    /// Address of the branch that ends it.
    pub last: Address,
    /// How often it was executed.
    pub count: u64,
    /// Cycles of one execution: mean.
    pub cycles_mean: Option<f64>,
    /// Median of these cycles.
    pub cycles_median: Option<f64>,
}

/// A block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockRow {
    /// Event.
    pub event: usize,
    /// Its module.
    pub module: String,
    /// Its function.
    pub function: String,
    /// First address.
    pub start: Address,
    /// Address after its last instruction.
    pub end: Address,
    /// How often it was entered in the recorded ranges.
    pub count: u64,
    /// Executions with a time of their own: ranges that are this block and nothing else.
    pub timed: u64,
    /// Cycles of those: mean.
    pub cycles_mean: Option<f64>,
    /// Median of these cycles.
    pub cycles_median: Option<f64>,
    /// Cycles and how many of those executions took them.
    pub histogram: Vec<(u64, u64)>,
}

/// A sampled instruction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InstructionRow {
    /// Event.
    pub event: usize,
    /// Its module.
    pub module: String,
    /// Its address.
    pub address: Address,
    /// Its function, if known.
    pub function: Option<String>,
    /// Samples.
    pub samples: u64,
}

/// A loop, by its back edge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopRow {
    /// Event.
    pub event: usize,
    /// Its module.
    pub module: String,
    /// Its function, if known.
    pub function: Option<String>,
    /// First address of its first block.
    pub head: Address,
    /// The branch back to it, or to code that goes straight on into it.
    pub back: Address,
    /// Where that branch goes: the head, or code of the loop that goes straight on into the head.
    pub target: Address,
    /// Why its trips and iterations are not known, if the code tells.
    #[serde(default)]
    pub unknown: Option<String>,
    /// How often that was taken.
    pub taken: u64,
    /// How often an execution enters the head.
    pub trips: TripsRow,
    /// Cycles from one back edge to the next of one execution.
    pub iterations: IterationsRow,
}

/// Trips of a loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TripsRow {
    /// Executions seen from beginning to end.
    pub whole: u64,
    /// Their mean.
    pub mean: Option<f64>,
    /// Trips and how many of those executions had them.
    pub histogram: Vec<(u64, u64)>,
    /// Executions of which the beginning or the end is not recorded.
    pub truncated: u64,
    /// Most trips seen of one of those: it had at least as many.
    pub at_least: Option<u64>,
    /// So often each time, as far as was seen.
    #[serde(default)]
    pub always: Option<u64>,
    /// So often on average: entries of the head ÷ recorded ends.
    #[serde(default)]
    pub about: Option<f64>,
    /// At least so often on average, as few ends are recorded (95 %).
    #[serde(default)]
    pub mean_at_least: Option<f64>,
}

/// Iterations of a loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IterationsRow {
    /// How many were timed.
    pub count: u64,
    /// Mean cycles.
    pub mean: Option<f64>,
    /// Median cycles.
    pub median: Option<f64>,
    /// Most frequent cycles, of iterations without a recorded misprediction.
    pub modes: Vec<u64>,
    /// Cycles and how many iterations took them.
    pub histogram: Vec<(u64, u64)>,
}

/// Calls of a function by another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    /// Event.
    pub event: usize,
    /// Module of the caller.
    pub module: String,
    /// The caller.
    pub from: String,
    /// Function called or jumped to.
    pub to: String,
    /// Module of that, where it is another.
    pub to_module: Option<String>,
    /// How often.
    pub count: u64,
}

/// An indirect jump or call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IndirectRow {
    /// Event.
    pub event: usize,
    /// Its module.
    pub module: String,
    /// Its address.
    pub from: Address,
    /// Its function, if known.
    pub function: Option<String>,
    /// `indirect jump` or `indirect call`.
    pub kind: BranchKind,
    /// How often it was recorded.
    pub count: u64,
    /// How often it was mispredicted, if the recording tells.
    pub mispredicted: Option<u64>,
    /// How often it was marked as predicted or mispredicted.
    #[serde(default)]
    pub marked: u64,
    /// Whether it is hard to predict, as edges are.
    #[serde(default)]
    pub hard: bool,
    /// Its targets, the most frequent first.
    pub targets: Vec<TargetRow>,
}

/// A target of an indirect branch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetRow {
    /// Its module, where it is another than the branch's.
    pub module: Option<String>,
    /// Its address; absent outside all known mappings.
    pub to: Option<Address>,
    /// Its function, if known.
    pub function: Option<String>,
    /// How often.
    pub count: u64,
    /// Share of the branch's executions, 0 to 1.
    pub share: f64,
    /// How often it was mispredicted, if the recording tells.
    #[serde(default)]
    pub mispredicted: Option<u64>,
    /// How often it was marked as predicted or mispredicted.
    #[serde(default)]
    pub marked: u64,
}

/// A module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModuleRow {
    /// Its path, as in the rows.
    pub path: String,
    /// Its build-id, if recorded.
    pub build_id: Option<String>,
    /// Whether its addresses are offsets in the file, as that was not found; else p_vaddr, of memory without a file
    /// addresses in memory.
    #[serde(default)]
    pub file_offsets: bool,
}
