//! Throughput and latency of instruction forms, as documents.

use crate::core_model::CoreModel;
use bench::microbench::{self, Bench, Connectors, Form, Latencies, Measurement, Multiset};
use report::documents::microbench::Document;
use tma::Result;

fn document<T>(result: T, model: &CoreModel) -> Document<T> {
    Document::new(result, &model.core, model.notes.clone())
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
    Ok(document(microbench::measure(bench, multiset)?, model))
}

/// Measures the latency from each operand of a form to each result.
///
/// # Errors
/// The sandbox cannot be started.
pub fn latencies(bench: &mut Bench, model: &CoreModel, form: Form) -> Result<Document<Latencies>> {
    let measured = microbench::latencies(bench, &mut Connectors::default(), form)?;
    Ok(document(measured, model))
}
