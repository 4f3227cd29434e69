//! Results of tdtool's own code: microbenchmarks, `tdtool.microbench/1`; descriptions of built-in programs,
//! `tdtool.workloads/1`, and one run of a program, `tdtool.workload/1`.

use serde::Serialize;
use tma::Core;
use workload::{Summary, Workload};

/// A result of a microbenchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Document<T> {
    /// Measurement.
    #[serde(flatten)]
    pub result: T,
    /// Table of the microarchitecture.
    pub uarch: Option<String>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

impl<T> Document<T> {
    /// A result of this core, with notes on it.
    pub fn new(result: T, core: &Core, notes: Vec<String>) -> Self {
        Self { result, uarch: core.uarch().map(str::to_owned), notes }
    }
}

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
