//! The width and clock of this core.

use crate::core_model::CoreModel;
use crate::tested;
use bench::{BlockMeasurer, Options};
use estimate::Interval;
use pmu::perf::tsc_hz_here;
use std::sync::Arc;
use tma::self_test::Seen;
use tma::{Core, Error, Result};

/// Most measurements of the core clock until nothing else runs.
const LOOKS: usize = 20;

/// Slots a cycle of the narrowest x86-64 core in use (Silvermont) and of the widest (Lion Cove, Zen 5), by their makers' optimization
/// guides; most have about four.
const WIDTHS: Interval = Interval { value: 4.0, low: 2.0, high: 8.0 };

/// From this share of what the table states on it may be the same core: a Zen 5 fills seven of its eight slots.
const FULL: f64 = 0.86;

/// Slots a cycle, after the self-test: as the table states, or more where that measures more; without a table as measured. Where
/// the self-test saw the same smaller number again and again, that, up to the table's. Where neither is known, from the most that
/// it saw, as contention only slows, to that of the widest core.
///
/// # Errors
/// The sandbox cannot be started, and no table describes the processor.
pub(super) fn width(core: &Arc<Core>) -> Result<Interval> {
    // Measurements outweigh the table, and the costs of mispredictions are needed later.
    let tested = tested::answers(core).map(|answers| answers.and_then(|all| all.seen));
    if let Some(width) = core.width() {
        let width = f64::from(width);
        let seen = tested.ok().flatten().and_then(|seen| narrower(core, seen)).unwrap_or(width);
        return Ok(Interval::new(seen, seen.min(width), seen.max(width)));
    }
    Ok(tested?.map_or(WIDTHS, |seen| {
        let least = seen.fastest.round().max(1.0);
        // One as wide as any that is known may be wider.
        let most = if least < WIDTHS.high { WIDTHS.high } else { 2.0 * least };
        Interval::new(least.max(WIDTHS.value), least, most)
    }))
}

/// The number of slots that the self-test saw each time, if that contradicts the table: this may be another core.
fn narrower(core: &Core, seen: Seen) -> Option<f64> {
    let sustained = core.facts().sustained_width.as_ref().map(|width| width.with_two_loads);
    let stated = f64::from(sustained.or(core.stated_width())?);
    let is_short = seen.is_own_limit(stated) && seen.fastest < FULL * stated;
    is_short.then(|| seen.fastest.round().max(1.0))
}

/// The core clock in GHz.
///
/// # Errors
/// Something else runs all the time; the sandbox cannot be started.
pub(super) fn clock(model: &CoreModel) -> Result<f64> {
    let mut measurer = BlockMeasurer::new(Options { core: model.core.clone(), ..Options::quick() });
    for _ in 0..LOOKS {
        if let Some(found) = measurer.cycles_per_tick()?.zip(tsc_hz_here()) {
            return Ok(found.0 * found.1 / 1e9);
        }
    }
    Err(Error::failed("the core clock is not known")
        .because("other programs use the processor all the time")
        .hint("try again on a quieter machine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Zen 4 (6 a cycle) behind the CPUID of a Zen 5 (8 slots, of which it fills 7); real cores that reach what
    /// their tables state, and one that others use.
    #[test]
    fn a_smaller_width_that_repeats_may_be_the_cores() {
        let of = |table: &str, seen: Seen| {
            narrower(&Core::modelled(&events::library(), table).unwrap(), seen)
        };
        let seen = |fastest, best, attempts| Seen { fastest, best, attempts, ..Seen::default() };
        assert_eq!(of("zen5", seen(5.98, 20, 24)), Some(6.0));
        assert_eq!(of("zen5", seen(7.0, 20, 24)), None);
        assert_eq!(of("zen4", seen(5.9, 20, 24)), None);
        assert_eq!(of("zen4", seen(3.9, 6, 24)), None);
        assert_eq!(of("zen5", seen(5.98, 15, 15)), None);
        // A sibling thread that is always busy.
        assert_eq!(of("zen4", seen(3.0, 24, 24)), None);
    }
}
