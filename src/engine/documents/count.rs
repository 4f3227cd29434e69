//! Exact counts of chosen functions: the document `tdtool.count/1`.

use super::report::Exit;
use serde::{Deserialize, Serialize};

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
    /// How the counted run ended.
    pub exit: Option<Exit>,
    /// Blocks, by module and address.
    pub blocks: Vec<BlockRow>,
    /// Control-flow edges between blocks of a function.
    pub edges: Vec<EdgeRow>,
    /// Loops.
    pub loops: Vec<LoopRow>,
    /// Conditional jumps.
    pub branches: Vec<BranchRow>,
    /// Functions and blocks without a count, and why.
    pub refused: Vec<Refused>,
    /// Sums of flow conservation that were checked.
    pub checked: usize,
    /// Sums that do not agree.
    pub contradictions: Vec<String>,
    /// What the runs took.
    pub cost: Vec<Cost>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// A block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockRow {
    /// Path of its file.
    pub module: String,
    /// Name of its function.
    pub function: String,
    /// First address, `0x…`.
    pub start: String,
    /// Address after its last instruction, `0x…`.
    pub end: String,
    /// Number of its instructions.
    pub instructions: usize,
    /// How often it was entered.
    pub count: u64,
    /// `placed` by a probe, or `derived` from its neighbours.
    pub how: String,
    /// Of a probe: `retarget`, `single`, `multi` or `pun`.
    pub probe: Option<String>,
}

/// An edge between two blocks of a function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeRow {
    /// Path of the file.
    pub module: String,
    /// First address of the block that is left.
    pub from: String,
    /// First address of the block that is entered.
    pub to: String,
    /// How often; absent where it does not follow from the blocks.
    pub count: Option<u64>,
}

/// A loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopRow {
    /// Path of the file.
    pub module: String,
    /// Name of its function.
    pub function: String,
    /// First address of its first block.
    pub head: String,
    /// How often it was entered from outside.
    pub entries: Option<u64>,
    /// How often its first block was entered.
    pub iterations: Option<u64>,
    /// Iterations of each entry.
    pub trips: Trips,
}

/// Iterations of an entry of a loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trips {
    /// On average.
    pub mean: Option<f64>,
}

/// A conditional jump.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BranchRow {
    /// Path of the file.
    pub module: String,
    /// Its address.
    pub address: String,
    /// How often it jumped.
    pub taken: Option<u64>,
    /// How often it did not.
    pub not_taken: Option<u64>,
}

/// A function or block without a count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// Path of the file.
    pub module: String,
    /// Name of the function.
    pub function: String,
    /// First address.
    pub start: String,
    /// Why.
    pub reason: String,
}

/// What a run took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// What was counted in it: `counts`.
    pub run: String,
    /// Wall time.
    pub seconds: f64,
    /// Wall time without probes, if that was asked for.
    pub plain: Option<f64>,
    /// Probes in the process with most of them.
    pub probes: usize,
}
