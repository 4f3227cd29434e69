//! `tdtool.kernel/1`: the result of a microbenchmark, with the core it is about.

use crate::core_model::CoreModel;
use bench::microbench::{self, Bench, Connectors, Form, Latencies, Measurement, Multiset};
use serde::Serialize;
use tma::Result;

/// A result of a microbenchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Document<T> {
    /// What was measured.
    #[serde(flatten)]
    pub result: T,
    /// Table of the microarchitecture.
    pub uarch: Option<String>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl<T> Document<T> {
    fn new(result: T, model: &CoreModel) -> Self {
        let uarch = model.core.uarch().map(str::to_owned);
        Self { result, uarch, notes: model.notes.clone() }
    }
}

/// Measures the throughput of a multiset of instruction forms.
///
/// # Errors
/// No microbenchmark can be made of it, or the sandbox cannot be started.
pub fn throughput(
    bench: &mut Bench,
    model: &CoreModel,
    multiset: &Multiset,
) -> Result<Document<Measurement>> {
    Ok(Document::new(microbench::measure(bench, multiset)?, model))
}

/// Measures the latency from each operand of a form to each result.
///
/// # Errors
/// The sandbox cannot be started.
pub fn latencies(bench: &mut Bench, model: &CoreModel, form: Form) -> Result<Document<Latencies>> {
    let measured = microbench::latencies(bench, &mut Connectors::default(), form)?;
    Ok(Document::new(measured, model))
}
