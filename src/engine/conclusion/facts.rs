//! What the verdict and the next steps read from the document.

use crate::documents::Report;

/// From this share on the kernel is what a report is about.
pub(super) const MUCH: f64 = 0.5;

/// Page faults a second of processor time from which they are worth a word: the kernel takes about a microsecond for each.
const FAULTS: f64 = 10_000.0;

/// Share of the time in the kernel; 0 where that is not known.
pub(super) fn kernel(report: &Report) -> f64 {
    report.sampled.as_ref().and_then(|sampled| sampled.kernel).unwrap_or(0.0)
}

/// Page faults a second of processor time, if they are many.
pub(super) fn faults(report: &Report) -> Option<f64> {
    let value = |name: &str| report.software.get(name).copied().flatten();
    let busy = value("task_clock_ms").filter(|ms| *ms > 0.0)? / 1e3;
    Some(value("page_faults")? / busy).filter(|rate| *rate >= FAULTS)
}

/// Whether a node of the tree was counted.
pub(super) fn is_counted(report: &Report) -> bool {
    report.nodes.iter().any(|node| node.value.is_some())
}
