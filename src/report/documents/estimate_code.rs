//! The instructions of a loop or block of an estimate, with what is known of each.

use super::count::LevelShare;
use serde::{Deserialize, Serialize};
use tma::Address;

/// An instruction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Instruction {
    /// Its address (p_vaddr).
    pub address: Address,
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
    /// Share of a branch's executions mispredicted, *modelled*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<f64>,
    /// Sources of a load's data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelShare>,
    /// Its shares of the parts of its loop or block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<Causes>,
}

/// Shares of a loop's or block's time that one of its instructions causes; those of all its instructions sum to the
/// parts. Retiring by µops, Bad Speculation by mispredictions, Core Bound to the critical path, Memory Bound by what
/// loads take beyond the first cache; what has no such evidence by samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Causes {
    /// Share of Retiring.
    pub retiring: f64,
    /// Share of Bad Speculation.
    pub bad_speculation: f64,
    /// Share of Fetch Latency and Fetch Bandwidth.
    pub frontend_bound: f64,
    /// Share of Core Bound and Memory Bound.
    pub backend_bound: f64,
    /// Share of the unexplained time.
    pub unexplained: f64,
}

impl Causes {
    /// In the order of the tree's level 1.
    pub fn level1(self) -> [f64; 5] {
        let Self { retiring, bad_speculation, frontend_bound, backend_bound, unexplained } = self;
        [retiring, bad_speculation, frontend_bound, backend_bound, unexplained]
    }
}
