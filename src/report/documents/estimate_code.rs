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
    /// Of a branch: the share of its executions that were mispredicted, *modelled*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<f64>,
    /// Of a load: where its data came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelShare>,
    /// What of the parts of its loop or block goes to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<Causes>,
}

/// What of the parts of a loop's or block's time goes to one of its instructions: shares of that time; those of all its
/// instructions sum to the parts. Retiring by µops, Bad Speculation by mispredictions, Core Bound to the critical path,
/// Memory Bound by what loads take beyond the first cache; what has no such evidence by samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Causes {
    /// Of Retiring.
    pub retiring: f64,
    /// Of Bad Speculation.
    pub bad_speculation: f64,
    /// Of Fetch Latency and Fetch Bandwidth.
    pub frontend_bound: f64,
    /// Of Core Bound and Memory Bound.
    pub backend_bound: f64,
    /// Of what is unexplained.
    pub unexplained: f64,
}

impl Causes {
    /// In the order of the tree's level 1.
    pub fn level1(self) -> [f64; 5] {
        let Self { retiring, bad_speculation, frontend_bound, backend_bound, unexplained } = self;
        [retiring, bad_speculation, frontend_bound, backend_bound, unexplained]
    }
}
