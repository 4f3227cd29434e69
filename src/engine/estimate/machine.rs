//! What must be known of this machine.

use crate::core_model::CoreModel;
use crate::tested;
use bench::{Options, Profiler};
use pmu::perf::tsc_hz_here;
use std::sync::Arc;
use tma::{Core, Error, Result};

/// How often the core clock is looked at until nothing else runs.
const LOOKS: usize = 20;

/// Slots a cycle, after the self-test: as the table states, or more where that measures more; without a table as measured.
///
/// # Errors
/// No table describes the processor and the self-test has no answer; the sandbox cannot be started.
pub(super) fn width(core: &Arc<Core>) -> Result<f64> {
    // What is measured outweighs the table, and the costs of mispredictions are needed later.
    let tested = tested::answers(core).map(|_| ());
    if core.width().is_none() {
        tested?;
    }
    core.width().map(f64::from).ok_or_else(|| {
        Error::not_possible("no estimated top-down")
            .because("the width of this processor is not known: no table describes it, and its self-test has no answer")
            .hint("`tdtool doctor --self-test` makes it again on a quieter machine; or name a table with --uarch")
    })
}

/// The core clock in GHz.
///
/// # Errors
/// Something else runs all the time; the sandbox cannot be started.
pub(super) fn clock(model: &CoreModel) -> Result<f64> {
    let mut profiler = Profiler::new(Options { core: model.core.clone(), ..Options::quick() });
    for _ in 0..LOOKS {
        if let Some(found) = profiler.cycles_per_tick()?.zip(tsc_hz_here()) {
            return Ok(found.0 * found.1 / 1e9);
        }
    }
    Err(Error::failed("the core clock is not known")
        .because("other programs use the processor all the time")
        .hint("try again on a quieter machine"))
}
