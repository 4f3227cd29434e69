//! Counts of a table's events, with what a report must state about them.

use std::collections::BTreeMap;
use std::time::Duration;
use tma::counts::Counts;
use tma::quantity::Missing;

/// Counts of software events in one block.
#[derive(Debug, Clone, PartialEq)]
pub struct Software {
    /// As [`Counts::scope`].
    pub scope: Option<String>,
    /// As [`Counts::interval`].
    pub interval: Option<(Duration, Duration)>,
    /// Value by perf's event name; times in the unit that perf prints (task-clock in milliseconds,
    /// duration_time in nanoseconds).
    pub values: BTreeMap<String, std::result::Result<f64, Missing>>,
}

/// An event the table does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEvent {
    /// As written.
    pub name: String,
    /// `FILE:LINE` of its first occurrence.
    pub place: String,
    /// Number of occurrences.
    pub occurrences: u64,
}

/// Counts of a table's events in a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// One for each block with counts, in file order.
    pub counts: Vec<Counts>,
    /// Software counts, for blocks that have some.
    pub software: Vec<Software>,
    /// Events that the table does not have, in order of appearance.
    pub unknown: Vec<UnknownEvent>,
    /// Number of rows of the other kind of core of a hybrid, which this table does not describe.
    pub other_core: u64,
    /// Facts about the import that a report must state.
    pub notes: Vec<String>,
}
