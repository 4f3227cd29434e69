//! The source lines of a function of an estimate.

use super::bottleneck::Bottleneck;
use super::estimate_code::Instruction;
use estimate::Parts;
use serde::{Deserialize, Serialize};

/// A source line with samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceLine {
    /// Its file, as the program names it.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// Its text; absent if the file was not found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Share of all samples.
    pub share: f64,
    /// Bottleneck of its loops and blocks, or `undecided` where they differ.
    pub bottleneck: Bottleneck,
    /// The mean parts of its loops and blocks.
    pub parts: Parts,
    /// Its instructions.
    pub code: Vec<Instruction>,
}
