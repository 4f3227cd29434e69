//! Phases of a run: times in which its intervals are alike.

use serde::{Deserialize, Serialize};

/// A phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Begin in seconds.
    pub from: f64,
    /// End in seconds.
    pub to: f64,
    /// Intervals in it.
    pub intervals: usize,
    /// Means over the intervals: shares of level 1, else software counts.
    pub values: Vec<PhaseValue>,
    /// The functions with most samples in it; none without samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<PhaseFunction>,
}

/// A mean over the intervals of a phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseValue {
    /// Label of a node, or name of a software count.
    pub label: String,
    /// Mean; `None`: not measured.
    pub value: Option<f64>,
    /// Whether it is a share, 0 to 1.
    pub is_share: bool,
}

/// A function in a phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseFunction {
    /// Demangled name.
    pub name: String,
    /// File name of its module.
    pub module: String,
    /// Share of the samples of the phase, 0 to 1.
    pub share: f64,
    /// Half width of its 95 % interval: sampling error, if samples are independent of one another.
    pub error: f64,
}
