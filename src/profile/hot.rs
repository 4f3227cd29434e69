//! Samples on functions, blocks and instructions.
//!
//! Shares are of the weight of all samples that pass the filter: of their periods where every
//! sample has one, else of their number.

use super::recording::Recording;
use super::symbols::Search;
use serde::{Deserialize, Serialize};

/// Which samples count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Index of the event; the first if `None`.
    pub event: Option<usize>,
    /// Threads; all if empty.
    pub threads: Vec<u32>,
    /// Nanoseconds since the first sample, from and to.
    pub time: Option<(u64, u64)>,
}

/// How exact the samples' addresses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skid {
    /// The instruction itself.
    None,
    /// The instruction or one a few behind it.
    Some,
    /// Where the timer's interrupt was taken: often the one behind a slow instruction.
    Timer,
}

/// A function with samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotFunction {
    /// Demangled name.
    pub name: String,
    /// Module's name.
    pub module: String,
    /// Module's path.
    pub path: String,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Samples in it.
    pub samples: u64,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line of its first instruction.
    pub line: Option<u32>,
    /// First address (p_vaddr).
    pub start: u64,
    /// Behind its last.
    pub end: u64,
    /// Why its code cannot be shown.
    pub gap: Option<String>,
}

/// A block with samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotBlock {
    /// Index of its function.
    pub function: usize,
    /// First address (p_vaddr).
    pub start: u64,
    /// Behind its last instruction.
    pub end: u64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Samples in it.
    pub samples: u64,
    /// How many loops are around it.
    pub loop_depth: u32,
    /// Source line of its hottest instruction.
    pub file: Option<String>,
    /// See `file`.
    pub line: Option<u32>,
}

/// An instruction of an annotated function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedLine {
    /// Address (p_vaddr).
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Intel syntax, addresses absolute.
    pub text: String,
    /// Samples on it.
    pub samples: u64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Source file and line.
    pub source: Option<(String, u32)>,
}

/// A block of an annotated function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedBlock {
    /// Its place and share.
    pub block: HotBlock,
    /// Start addresses of the blocks it may go on to.
    pub edges: Vec<u64>,
    /// Whether it is the head of a loop.
    pub is_head: bool,
    /// The head of the loop it jumps back to.
    pub back_to: Option<u64>,
    /// Whether edges are missing: an indirect jump whose targets were not found.
    pub unresolved: bool,
    /// Its instructions.
    pub lines: Vec<AnnotatedLine>,
}

/// A function with its code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotated {
    /// The function.
    pub function: HotFunction,
    /// Its blocks, in order of address.
    pub blocks: Vec<AnnotatedBlock>,
    /// What must be known to read it.
    pub notes: Vec<String>,
}

/// What a recording says about the code.
#[derive(Debug)]
pub struct Profile {
    /// Functions with samples, hottest first.
    pub functions: Vec<HotFunction>,
    /// Name of the event that the samples are of.
    pub event: String,
    /// How exact they are.
    pub skid: Skid,
    /// Samples that count.
    pub samples: u64,
    /// Records lost.
    pub lost: u64,
    /// What must be known to read it.
    pub notes: Vec<String>,
}

impl Profile {
    /// Attributes the samples of a recording.
    pub fn new(recording: &Recording, filter: &Filter, search: Search) -> Self {
        let _ = (filter, search);
        Self {
            functions: Vec::new(),
            event: recording.events.first().map(|e| e.name.clone()).unwrap_or_default(),
            skid: Skid::Timer,
            samples: 0,
            lost: recording.lost,
            notes: recording.notes.clone(),
        }
    }

    /// The code of the function at `index`, with its samples.
    pub fn annotate(&mut self, index: usize) -> Annotated {
        let function = self.functions.get(index).cloned().unwrap_or_default();
        Annotated { function, ..Annotated::default() }
    }

    /// The hottest blocks of the hottest functions.
    pub fn blocks(&mut self, most: usize) -> Vec<HotBlock> {
        let _ = most;
        Vec::new()
    }
}
