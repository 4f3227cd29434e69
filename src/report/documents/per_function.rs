//! The part of a report about the tree of each function, from counts that samples read.

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
