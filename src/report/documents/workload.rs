//! The documents of the built-in programs: `tdtool.workloads/1` describes them, `tdtool.workload/1`
//! is one run.

use serde::Serialize;
use workload::{Summary, Workload};

/// Descriptions of built-in programs.
#[derive(Debug, Serialize)]
pub struct Catalog<'a> {
    schema: &'static str,
    /// The programs.
    pub workloads: &'a [Workload],
}

impl<'a> Catalog<'a> {
    /// The descriptions of `workloads`.
    pub fn new(workloads: &'a [Workload]) -> Self {
        Self { schema: "tdtool.workloads/1", workloads }
    }
}

/// Result of one run.
#[derive(Debug, Serialize)]
pub struct Run<'a> {
    schema: &'static str,
    /// Its figures.
    #[serde(flatten)]
    pub summary: &'a Summary,
}

impl<'a> Run<'a> {
    /// The run that `summary` is of.
    pub fn new(summary: &'a Summary) -> Self {
        Self { schema: "tdtool.workload/1", summary }
    }
}
