//! The chunks that counts need.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tma::counts::Counts;

/// A table with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTable {
    /// Its name.
    pub name: String,
    /// Its TOML text.
    pub text: String,
}

/// Counts and the table their event ids belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredCounts {
    /// Name of the [`StoredTable`].
    pub table: String,
    /// The counts.
    pub counts: Counts,
}

/// Software counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SoftwareCounts {
    /// As [`Counts::scope`].
    pub scope: Option<String>,
    /// As [`Counts::interval`].
    pub interval: Option<(Duration, Duration)>,
    /// By perf's event name; `None` if it could not be counted.
    pub values: BTreeMap<String, Option<f64>>,
}
