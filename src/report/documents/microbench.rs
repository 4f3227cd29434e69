//! `tdtool.microbench/1`: the result of a microbenchmark, with the core it is about.

use serde::Serialize;
use tma::Core;

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
