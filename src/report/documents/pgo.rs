//! A profile for optimisers from exact counts: the document `tdtool.pgo/1`. Addresses are p_vaddr.

use serde::{Deserialize, Serialize};
use tma::Address;

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.pgo/1";

/// The flow through the functions of a module in one or several runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pgo {
    /// [`SCHEMA`].
    pub schema: String,
    /// Path of the file.
    pub module: String,
    /// Its build-id, in hexadecimal digits.
    pub build_id: Option<String>,
    /// Whether it has the linker's relocations (`-Wl,-q`), by which functions can be moved.
    pub has_relocations: bool,
    /// Whether it has line numbers (DWARF), by which a compiler finds its code.
    pub has_lines: bool,
    /// Runs whose counts are added up.
    pub runs: usize,
    /// Functions that were executed, or of which that is not known; in order of address.
    pub functions: Vec<FunctionRow>,
    /// Blocks of these, in order of address.
    pub blocks: Vec<BlockRow>,
    /// How control passes between these.
    pub edges: Vec<EdgeRow>,
    /// Executed instructions, by how the counts of their blocks are known.
    pub executed: Weights,
    /// Sums of the counts of `edges`, by how they are known.
    pub passed_edges: Weights,
    /// Symbols of the executed functions that have one, in an order in which callers are near what they call.
    pub order: Vec<String>,
    /// Functions with their executed machine blocks (of LLVM); absent if the file has no map of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Vec<ClusterRow>>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// How a count is known, the best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// By a probe.
    Counted,
    /// It follows from counts.
    Derived,
    /// It agrees with all counts, and is nearest to shares that a further run recorded; or it is of a recording alone.
    Sampled,
    /// It agrees with all counts, but others would, too.
    Fitted,
    /// Not at all.
    #[default]
    Unknown,
}

/// Executions, by how they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// By probes.
    pub counted: u64,
    /// From counts.
    pub derived: u64,
    /// By recorded shares.
    pub sampled: u64,
    /// Fitted.
    pub fitted: u64,
    /// How many blocks, or edges, have no count.
    pub unknown: usize,
}

impl Weights {
    /// Adds a count.
    pub fn add(&mut self, count: Option<u64>, how: How) {
        let Some(count) = count else {
            self.unknown += 1;
            return;
        };
        let of = match how {
            How::Counted => &mut self.counted,
            How::Derived => &mut self.derived,
            How::Sampled => &mut self.sampled,
            _ => &mut self.fitted,
        };
        *of = of.saturating_add(count);
    }

    /// All that is known.
    pub fn known(self) -> u64 {
        let all = [self.counted, self.derived, self.sampled, self.fitted];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// The share of a part in it, in percent.
    pub fn percent(self, part: u64) -> f64 {
        100.0 * part as f64 / (self.known() as f64).max(1.0)
    }
}

/// A function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionRow {
    /// Its symbol; its address if it has none.
    pub name: String,
    /// First address.
    pub start: Address,
    /// Address after its last instruction.
    pub end: Address,
    /// Entries that no call or jump in `edges` explains: by pointers whose targets were not recorded, and from outside.
    pub other_entries: Option<u64>,
    /// How that is known.
    pub how: How,
    /// Instructions executed in it; absent if a block has no count.
    pub executed: Option<u64>,
}

/// The executed machine blocks of a function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterRow {
    /// Its symbol.
    pub function: String,
    /// Numbers of its blocks (`.llvm_bb_addr_map`), in an order in which control mostly goes straight on.
    pub blocks: Vec<u64>,
}

/// A block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockRow {
    /// First address.
    pub start: Address,
    /// Address of its last instruction.
    pub last: Address,
    /// Number of its instructions.
    pub instructions: usize,
    /// How often it was entered.
    pub count: Option<u64>,
    /// How that is known.
    pub how: How,
}

/// The kind of an edge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// Straight on to the next block.
    #[default]
    Next,
    /// A jump that is taken within the function.
    Jump,
    /// A call.
    Call,
    /// A jump to another function.
    Tail,
}

/// Control that passes from the end of a block to another block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeRow {
    /// First address of the block that is left.
    pub block: Address,
    /// Address of its last instruction.
    pub from: Address,
    /// First address of the block that is entered.
    pub to: Address,
    /// Its kind.
    pub kind: EdgeKind,
    /// How often.
    pub count: Option<u64>,
    /// How that is known.
    pub how: How,
}
