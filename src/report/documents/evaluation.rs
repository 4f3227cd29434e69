//! Node values for counts from a file: rows `trial,node,value,over`, for every node, bottleneck and
//! info metric.
//!
//! Where counts are missing the value is empty. Where a formula divides by a count of zero it is 0,
//! because these rows are for comparing tables with perf and toplev, which print 0; a report calls
//! such a value undefined.

/// The value of a node in a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The trial's name.
    pub trial: String,
    /// The node's id.
    pub node: String,
    /// Its value; `None`: counts are missing.
    pub value: Option<f64>,
    /// Whether it is over its threshold; `None`: there is none, or a node in it is missing.
    pub over: Option<bool>,
}

/// All values, and what must be known about them.
#[derive(Debug, Clone, Default)]
pub struct Evaluation {
    /// The table's name.
    pub table: String,
    /// The values, trial by trial.
    pub rows: Vec<Row>,
    /// Events in the file that the table lacks.
    pub unknown: Vec<String>,
    /// Nodes without a value, one entry per reason.
    pub missing: Vec<String>,
    /// Nodes whose value is undefined and given as 0, one entry per reason.
    pub undefined: Vec<String>,
}
