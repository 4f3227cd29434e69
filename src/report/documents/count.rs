//! Exact counts of chosen functions, and registers at the entries of their blocks: the document `tdtool.count/1`.

mod branches;
mod contention;
mod loads;
mod targets;

use super::command::{Exit, Purpose};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use tma::Address;
use tma::error::{Error, Result};

pub use ::loads::class::Kind;
pub use ::loads::contention::Contention;
pub use ::loads::latency::Level;
pub use branches::{
    BranchKind, BranchRow, LoopRow, Mispredictions, Modelled, ModelledSource, PredictedReturn,
    PredictedTarget, Trips, TripsSource,
};
pub use contention::{ContendedAccess, ContendedLine};
pub use loads::{
    AllocatedAt, AllocationSite, LevelMean, LevelShare, LoadClass, LoadLatency, LoadMemory,
    LoadRow, TimerRow,
};
pub use targets::TargetRow;

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.count/1";

/// Counts of blocks, edges, branches and loops of one run of a command. Addresses are p_vaddr.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// [`SCHEMA`].
    pub schema: String,
    /// The command; empty if it was a live process.
    pub command: Vec<String>,
    /// The live process that was counted for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<i32>,
    /// Whether a command was counted in windows, a fifth of the time, not all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sample: bool,
    /// How the counted run ended.
    pub exit: Option<Exit>,
    /// The signal that interrupted the runs: what is missing was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<i32>,
    /// The files of the counted functions.
    #[serde(default)]
    pub modules: Vec<ModuleRow>,
    /// Blocks, by module and address.
    pub blocks: Vec<BlockRow>,
    /// Control-flow edges between blocks of a function.
    pub edges: Vec<EdgeRow>,
    /// Loops.
    pub loops: Vec<LoopRow>,
    /// Conditional jumps; with their mispredictions, indirect jumps and calls, too.
    pub branches: Vec<BranchRow>,
    /// Loads, if they were asked for: those executed most often.
    #[serde(default)]
    pub loads: Vec<LoadRow>,
    /// Where the memory that they read was allocated; those that most addresses are of first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocation_sites: Vec<AllocationSite>,
    /// Stores, if loads were asked for: addresses only, without levels and latencies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<LoadRow>,
    /// Cache lines that threads contend for, by the recorded addresses; those with most of them first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contended_lines: Vec<ContendedLine>,
    /// Registers at the entries of functions and loops, if asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueRow>,
    /// Timer and cache hits that latencies of loads were compared with.
    #[serde(default)]
    pub timer: Option<TimerRow>,
    /// Cycles that a misprediction costs here, by the self-test; with mispredictions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misprediction_cycles: Option<f64>,
    /// Cycles of a mispredicted return below the stack of return addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_misprediction_cycles: Option<f64>,
    /// Cycles of a mispredicted return where that is not known, and of a branch that waits for no load of its block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_misprediction_cycles: Option<f64>,
    /// Cycles of a mispredicted indirect jump or call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indirect_misprediction_cycles: Option<f64>,
    /// Cycles that each further load adds which the branch waits for: from the second load on, of an indirect jump or
    /// call from the third.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_misprediction_cycles: Option<f64>,
    /// Which of several targets is taken to be predicted, and why; with mispredictions only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_target: Option<PredictedTarget>,
    /// Prediction of returns of deeply nested calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_return: Option<PredictedReturn>,
    /// Facts of the self-test in the model of branch predictors, a sentence each; with mispredictions only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<String>,
    /// Recorded targets of jumps and calls, if asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetRow>,
    /// Functions and blocks without a count, and why.
    pub refused: Vec<Refused>,
    /// Sums of flow conservation that were checked.
    pub checked: usize,
    /// Sums that do not agree.
    pub contradictions: Vec<String>,
    /// How the functions were chosen, if by samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<HotFunctions>,
    /// Costs of the runs.
    pub cost: Vec<Cost>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

impl Count {
    /// Who allocated the memory that a load of it reads; `None` if nothing of that was allocated or is known.
    pub fn memory_of(&self, load: &LoadRow) -> Option<String> {
        load.memory.as_ref()?.words(&self.allocation_sites)
    }

    /// The document in a file.
    ///
    /// # Errors
    /// It cannot be read, or is another.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |why: String| {
            Error::failed(format!("cannot read the counts in {}", tma::files::name(path)))
                .because(why)
                .hint("`tdtool count --hot --format json --output FILE -- COMMAND` writes them")
        };
        let text = tma::files::read_text(path, tma::files::LONGEST_TEXT)
            .map_err(|e| failed(e.to_string()))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| failed(e.to_string()))?;
        match value.get("schema").and_then(|schema| schema.as_str()) {
            Some(SCHEMA) => serde_json::from_value(value).map_err(|e| failed(e.to_string())),
            Some(other) => Err(failed(format!("its schema is `{other}`, not `{SCHEMA}`"))),
            None => Err(failed(format!("it has no schema, such as `{SCHEMA}`"))),
        }
    }
}

/// The index of each row by its module and address; the first where several have the same.
pub fn by_place<'r, T>(
    rows: &'r [T],
    place: impl Fn(&'r T) -> (&'r str, Address),
) -> HashMap<(String, Address), usize> {
    let mut found = HashMap::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        let (module, address) = place(row);
        found.entry((module.to_owned(), address)).or_insert(number);
    }
    found
}

/// A file with counted functions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleRow {
    /// Its path.
    pub path: String,
    /// Its build-id in hexadecimal digits; absent if it has none.
    pub build_id: Option<String>,
}

/// How the count of a block is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// By a probe.
    Placed,
    /// From its neighbours.
    #[default]
    Derived,
}

shown_as_written!(How);

/// How a probe is put into the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeKind {
    /// A call goes to the probe.
    Retarget,
    /// A jump in place of one instruction.
    Single,
    /// A jump in place of several.
    Multi,
    /// A jump in place of a shorter instruction, which ends in the bytes after it.
    Pun,
}

shown_as_written!(ProbeKind);

/// A block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockRow {
    /// Path of its file.
    pub module: String,
    /// Name of its function.
    pub function: String,
    /// First address.
    pub start: Address,
    /// Address after its last instruction.
    pub end: Address,
    /// Number of its instructions.
    pub instructions: usize,
    /// How often it was entered.
    pub count: u64,
    /// How that is known.
    pub how: How,
    /// Which kind of probe counts it.
    pub probe: Option<ProbeKind>,
    /// Samples of the run by which its function was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
}

/// An edge between two blocks of a function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeRow {
    /// Path of the file.
    pub module: String,
    /// First address of the block that is left.
    pub from: Address,
    /// First address of the block that is entered.
    pub to: Address,
    /// How often; absent where it does not follow from the blocks.
    pub count: Option<u64>,
}

/// A function or block without a count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// Path of the file.
    pub module: String,
    /// Name of the function.
    pub function: String,
    /// First address.
    pub start: Address,
    /// Why.
    pub reason: String,
}

/// The functions that hold most of the samples of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotFunctions {
    /// Share of the samples that was asked for, 0 to 1.
    pub asked: f64,
    /// Event that was sampled.
    pub event: String,
    /// Samples of the run.
    pub samples: u64,
    /// Their mean period: nanoseconds of a clock, else of what the event counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<f64>,
    /// The functions, hottest first.
    pub functions: Vec<HotRow>,
}

/// A function with its share of the samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotRow {
    /// Path of its file; empty for the kernel.
    pub module: String,
    /// Name of the function.
    pub function: String,
    /// Its share of the samples, 0 to 1.
    pub share: f64,
    /// Why its blocks are not counted; absent where they are asked for.
    pub reason: Option<String>,
}

/// Cost of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Purpose of the run.
    pub run: Purpose,
    /// Wall time.
    pub seconds: f64,
    /// Wall time of a run without probes: the sampled one, or one more that was asked for.
    pub plain: Option<f64>,
    /// Probes in the process with most of them.
    pub probes: usize,
    /// How it ended; absent of a window, and where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

/// Which kind of block registers are recorded at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValuesAt {
    /// The entry of a function.
    Function,
    /// The head of a loop.
    Loop,
    /// Another block.
    #[default]
    Block,
}

/// Kind of a register's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// Always the same.
    Constant,
    /// A few different ones.
    Few,
    /// Addresses of mapped memory.
    Pointer,
    /// Most entries advance by `stride`.
    Range,
    /// Others.
    Spread,
    /// Not known.
    #[default]
    Unknown,
}

/// The registers of a block's sampled entries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueRow {
    /// Path of the file.
    pub module: String,
    /// Name of the function.
    pub function: String,
    /// First address of the block.
    pub block: Address,
    /// Kind of the block.
    pub of: ValuesAt,
    /// How often it was entered in the counted run; absent where that is not known.
    pub entries: Option<u64>,
    /// Entries whose registers were recorded, in a run of their own.
    pub sampled: u64,
    /// The general registers that are read later.
    pub registers: Vec<RegisterRow>,
    /// Why there are none, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why what it has is of different extents: a run was killed, say, and the others were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extents: Option<String>,
}

/// A register. Numbers are signed where 32 or 64 bits are read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegisterRow {
    /// Its name, of as many bits as are read.
    pub register: String,
    /// Lower bits that are read.
    pub bits: u32,
    /// Kind of the values.
    pub kind: ValueKind,
    /// Value of `constant`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// Values of `few`, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueShare>,
    /// By how much most entries differ from the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<i64>,
    /// Their share, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride_share: Option<f64>,
    /// Alignment of a pointer: the largest power of two that divides all its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment: Option<u64>,
    /// Memory that a pointer points to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<RegionShare>,
    /// Lowest value seen of `range` and `spread`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<i64>,
    /// The highest value that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
}

/// A value, and how many of the sampled entries had it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueShare {
    /// The value.
    pub value: i64,
    /// 0 to 1.
    pub share: f64,
}

/// A part of memory, and how many of the sampled entries had a pointer to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionShare {
    /// `stack`, `heap`, `anonymous memory`, `null`, `unmapped`, or the name of a file.
    pub region: String,
    /// 0 to 1.
    pub share: f64,
}
