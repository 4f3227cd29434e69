//! Counts of functions: the result of a run.

use super::uncounted::Uncounted;
use crate::patch::Trampolines;
use crate::plan::Kind;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Result of a run.
#[derive(Debug, Clone)]
pub struct Counts {
    /// Counts of each function, in the order of the request, or why there are none.
    pub functions: Vec<Result<FunctionCounts, Uncounted>>,
    /// From the start of the command to its end.
    pub wall: Duration,
    /// How the command ended.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted the run.
    pub interrupted: Option<i32>,
    /// It was interrupted during the analysis, before any count.
    pub unplanned: bool,
    /// The code could not be restored; a note says why.
    pub remains: bool,
    /// Most probes in one process.
    pub probes: usize,
    /// Original code of the trampolines of the first images.
    pub trampolines: Vec<Trampolines>,
    /// Files with code in the processes at their ends; empty for a live process.
    pub files: BTreeSet<PathBuf>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
}

/// The counts of one function.
#[derive(Debug, Clone, Default)]
pub struct FunctionCounts {
    /// Its blocks, in order of address.
    pub blocks: Vec<BlockCount>,
    /// Its edges between blocks.
    pub edges: Vec<EdgeCount>,
    /// Its conditional jumps.
    pub branches: Vec<BranchCount>,
    /// Its loops, outer ones first.
    pub loops: Vec<LoopCount>,
    /// Checked sums of flow conservation.
    pub checked: usize,
    /// Sums that do not agree, and counts below 0.
    pub contradictions: Vec<String>,
    /// Permitted difference of sums: threads may have ended inside a block.
    pub slack: u64,
}

/// The count of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockCount {
    /// First address (p_vaddr).
    pub start: u64,
    /// Address after its last instruction.
    pub end: u64,
    /// Number of its instructions.
    pub instructions: usize,
    /// How often it was entered, or why that is not known.
    pub count: Result<u64, Uncounted>,
    /// Kind of its probe; `None` if derived from its neighbours.
    pub kind: Option<Kind>,
}

/// How often control passed from one block to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeCount {
    /// First address of the block that is left.
    pub from: u64,
    /// First address of the block that is entered.
    pub to: u64,
    /// Its count, if it follows from those of the blocks.
    pub count: Option<u64>,
}

/// How often a conditional jump was taken, where that follows from the counts of the blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchCount {
    /// Its address.
    pub address: u64,
    /// How often it jumped.
    pub taken: Option<u64>,
    /// How often it did not.
    pub not_taken: Option<u64>,
}

/// How often a loop was entered and iterated, where that follows from the counts of the blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopCount {
    /// First address of its first block.
    pub head: u64,
    /// How often it was entered from outside.
    pub entries: Option<u64>,
    /// How often its first block was entered.
    pub iterations: Option<u64>,
    /// Why one of them is not known.
    pub reason: Option<Uncounted>,
}
