//! What was found of the functions to count.

use super::uncounted::Uncounted;
use crate::patch::Trampolines;
use crate::plan::Kind;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// What one run gave.
#[derive(Debug, Clone)]
pub struct Counts {
    /// By function, in the order of the request; or why it was not counted.
    pub functions: Vec<Result<FunctionCounts, Uncounted>>,
    /// From the start of the command to its end.
    pub wall: Duration,
    /// How it ended.
    pub exit: Option<pmu::Exit>,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    /// It was interrupted while the code was analysed, before anything was counted; `functions` say so.
    pub unplanned: bool,
    /// Its code could not be put back as it was; a note says why.
    pub remains: bool,
    /// Most probes in one process.
    pub probes: usize,
    /// What the trampolines of the first images stand for.
    pub trampolines: Vec<Trampolines>,
    /// Files with code in its processes, at their ends; none of a live process.
    pub files: BTreeSet<PathBuf>,
    /// What else must be known.
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
    /// Sums of flow conservation that were checked.
    pub checked: usize,
    /// Sums that do not agree, and counts below 0.
    pub contradictions: Vec<String>,
    /// Sums may differ by this: threads may have ended inside a block.
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
    /// How it was counted; `None` if from its neighbours.
    pub kind: Option<Kind>,
}

/// How often control passed from one block to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeCount {
    /// First address of the block that is left.
    pub from: u64,
    /// First address of the block that is entered.
    pub to: u64,
    /// How often, if that follows from the counts of the blocks.
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
