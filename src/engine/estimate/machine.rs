//! What must be known of this machine.

use crate::core_model::CoreModel;
use crate::tested;
use bench::{Options, Profiler};
use estimate::Interval;
use pmu::perf::tsc_hz_here;
use std::sync::Arc;
use tma::{Core, Error, Result};

/// How often the core clock is looked at until nothing else runs.
const LOOKS: usize = 20;

/// Slots a cycle of the narrowest x86-64 core in use (Silvermont) and of the widest (Lion Cove, Zen 5), by their makers' optimization
/// guides; most have about four.
const WIDTHS: Interval = Interval { value: 4.0, low: 2.0, high: 8.0 };

/// Slots a cycle, after the self-test: as the table states, or more where that measures more; without a table as measured. Where
/// neither is known, from the most that the self-test saw, as contention only slows, to that of the widest core.
///
/// # Errors
/// The sandbox cannot be started, and no table describes the processor.
pub(super) fn width(core: &Arc<Core>) -> Result<Interval> {
    // What is measured outweighs the table, and the costs of mispredictions are needed later.
    let tested = tested::answers(core).map(|answers| answers.and_then(|all| all.seen));
    if let Some(width) = core.width() {
        return Ok(Interval::exact(f64::from(width)));
    }
    Ok(tested?.map_or(WIDTHS, |seen| {
        let least = seen.fastest.round().max(1.0);
        Interval::new(least.max(WIDTHS.value), least, least.max(WIDTHS.high))
    }))
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
