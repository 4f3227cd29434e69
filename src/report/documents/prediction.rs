//! Prediction of published tables for a block on a core. Nothing in it is measured.

use serde::Serialize;
use std::fmt;

/// Which lower bound is the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictedBound {
    /// Slots of the issue width.
    IssueWidth,
    /// Ports.
    Ports,
    /// A loop-carried dependency.
    Recurrence,
}

/// Word in documents.
impl fmt::Display for PredictedBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A prediction: the largest of three lower bounds.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// Always `predicted`.
    pub kind: &'static str,
    /// Name of the core's event table.
    pub uarch: String,
    /// Its title.
    pub title: String,
    /// Whether it is the core that was measured.
    pub measured_core: bool,
    /// Core cycles per iteration, at least: the largest part. `None`: no part is known.
    pub cycles: Option<f64>,
    /// The largest part.
    pub bound: Option<PredictedBound>,
    /// Issue slots over the width.
    pub issue_width: Option<IssueWidth>,
    /// The ports.
    pub ports: Option<Pressure>,
    /// The slowest loop-carried dependency.
    pub recurrence: Option<CarriedLatency>,
    /// Instructions whose form the table of ports lacks; the bounds do not include them.
    pub unknown: Vec<String>,
    /// Why parts are missing.
    pub missing: Vec<String>,
}

/// The bound of the issue width.
#[derive(Debug, Clone, Serialize)]
pub struct IssueWidth {
    /// Core cycles per iteration.
    pub cycles: f64,
    /// Issue slots per iteration.
    pub slots: f64,
    /// Slots a cycle.
    pub width: u32,
}

/// The bound of loop-carried latency.
#[derive(Debug, Clone, Serialize)]
pub struct CarriedLatency {
    /// Core cycles per iteration, with the lowest latencies.
    pub cycles: f64,
    /// With the highest.
    pub high: f64,
    /// Its instructions.
    pub path: Vec<String>,
    /// Whether any latency in it is assumed, because no table has it.
    pub assumed: bool,
}

/// The ports' bound, and the load of each instruction on each port.
#[derive(Debug, Clone, Serialize)]
pub struct Pressure {
    /// Core cycles per iteration of the busiest port: no assignment needs fewer.
    pub cycles: f64,
    /// Names of the ports: the columns.
    pub names: Vec<String>,
    /// One row for each instruction.
    pub instructions: Vec<PortRow>,
    /// Sum of each column.
    pub total: Vec<f64>,
    /// Sources of its µops.
    pub sources: Vec<String>,
}

/// An instruction's load on each port.
#[derive(Debug, Clone, Serialize)]
pub struct PortRow {
    /// Intel syntax.
    pub text: String,
    /// Issue slots; `None`: not known.
    pub slots: Option<f64>,
    /// Its µops by the ports that they can use; `None`: not known.
    pub uops: Option<String>,
    /// Why it has no µop of its own: `zero idiom`, `eliminated at renaming`, `fused with the branch`.
    pub without: Option<&'static str>,
    /// Source of the µops.
    pub source: Option<String>,
    /// Average cycles per iteration on each port; empty where its µops are not known.
    pub cycles: Vec<f64>,
}
