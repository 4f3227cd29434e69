//! The instructions of a loop or block of an estimate, with what is known of each.

use super::count::LevelShare;
use serde::{Deserialize, Serialize};

/// An instruction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Instruction {
    /// Its address (p_vaddr).
    pub address: String,
    /// Its bytes, in hex.
    pub bytes: String,
    /// Intel syntax.
    pub text: String,
    /// Its samples, which are often of the instruction before it.
    pub samples: u64,
    /// Share of all samples.
    pub share: f64,
    /// Whether it is on the loop-carried critical path.
    #[serde(default)]
    pub critical: bool,
    /// Source file and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<(String, u32)>,
    /// Of a branch: the share of its executions that were mispredicted, *modelled*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<f64>,
    /// Of a load: where its data came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelShare>,
}
