//! The code of a function, block by block, with its share of the samples.

use super::function::HotFunction;
use super::skid::Skid;
use serde::{Deserialize, Serialize};

/// A block with samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotBlock {
    /// Index of its function.
    pub function: usize,
    /// First address (p_vaddr).
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Number of samples.
    pub samples: u64,
    /// Nesting depth of loops.
    pub loop_depth: u32,
    /// Source file of its hottest instruction.
    pub file: Option<String>,
    /// Line in `file`.
    pub line: Option<u32>,
    /// Inlined function that the line belongs to.
    #[serde(default)]
    pub inlined: Option<String>,
}

/// A loop with samples, less the loops within it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HotLoop {
    /// First address of the block that it is entered at (p_vaddr).
    pub head: u64,
    /// Number of its blocks.
    pub blocks: usize,
    /// From its first address to the end of its last instruction; the line is that of its hottest block.
    pub whole: HotBlock,
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
    /// Number of samples.
    pub samples: u64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
    /// Source file and line.
    pub source: Option<(String, u32)>,
}

/// A block of an annotated function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnotatedBlock {
    /// Its address range and share.
    pub block: HotBlock,
    /// Start addresses of its successors.
    pub edges: Vec<u64>,
    /// Whether it is the head of a loop.
    pub is_head: bool,
    /// The head of the loop that it closes.
    pub back_to: Option<u64>,
    /// Whether edges are missing: it ends in an indirect jump with unknown targets.
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
    /// How exact the addresses of its samples are, where its code is available.
    pub skid: Option<Skid>,
    /// Other limits that a reader must know.
    pub notes: Vec<String>,
}
