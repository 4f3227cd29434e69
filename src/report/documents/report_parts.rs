//! Parts of a report: the tree of each function, from counts that samples read; phases, in which intervals are
//! alike; samples with their times.

use profile::hot::Timeline as Taken;
use serde::{Deserialize, Serialize};

/// Level 1 of each function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PerFunction {
    /// The table.
    pub table: String,
    /// Event at whose samples counts were read.
    pub event: String,
    /// Differences between successive readings of a thread.
    pub readings: u64,
    /// Median time between them, nanoseconds.
    pub interval_ns: f64,
    /// Smallest share of the time of a function whose tree can be trusted.
    pub smallest_share: f64,
    /// The functions, by time.
    pub functions: Vec<FunctionTree>,
    /// How counts are attributed, and other limits.
    pub notes: Vec<String>,
}

/// Level 1 of a function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionTree {
    /// Demangled name.
    pub name: String,
    /// Name without parameters and return type of C++.
    pub short: String,
    /// File name of its module.
    pub module: String,
    /// Share of the counted time, 0 to 1.
    pub share: f64,
    /// Readings that ended in it.
    pub readings: u64,
    /// Share of its time from readings that began in another function.
    pub mixed: f64,
    /// Whether its nodes are known well enough to act on.
    pub trusted: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Its nodes.
    pub nodes: Vec<FunctionNode>,
}

/// A node of one function.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionNode {
    /// The vendor's name.
    pub id: String,
    /// Shown name.
    pub label: String,
    /// The share, as a ratio.
    pub value: Option<f64>,
    /// Half width of its 95 % interval: sampling, over readings.
    pub error: Option<f64>,
    /// Change by attribution to the later function: the difference to readings that began and ended in it.
    pub bias: Option<f64>,
    /// Why there is no value.
    pub missing: Option<String>,
}

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

/// Samples over time. It is no part of the report in JSON: it is as large as the recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// The sampled event.
    pub event: String,
    /// The samples.
    pub taken: Taken,
    /// Nodes that time goes to.
    pub nodes: Vec<String>,
    /// Number of each sample's node, where one is known: the samples of a function are divided among its nodes.
    pub node_of: Vec<Option<usize>>,
    /// Where the nodes come from.
    pub source: Option<String>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

impl Timeline {
    /// The function of a call chain of `taken`, without functions inlined into it.
    pub fn function(&self, stack: u32) -> Option<&profile::hot::StackFrame> {
        let frames = self.taken.stacks.get(stack as usize)?.iter();
        frames.rev().map(|frame| &self.taken.frames[*frame]).find(|frame| !frame.is_inlined())
    }
}
