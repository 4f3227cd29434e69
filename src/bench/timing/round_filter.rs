//! Accepts the rounds with a steady clock and no contention, in core cycles.

use super::form_timing::FormTiming;
use crate::clock::{Calibration, NoRatio, Sentinel, TscClock, step};

/// Placements whose clocks differ by less than this share are calibrated together.
const SAME_CLOCK: f64 = 0.005;

/// Ticks of one round.
pub struct Round {
    /// The long run.
    pub long: f64,
    /// The short run.
    pub short: f64,
    /// Chains and sentinels around them.
    pub calibration: Calibration,
}

/// Adds the accepted rounds of each placement to its batch; with `single` only long runs count. Without
/// a sentinel every round is uncontended. Returns the placements that still have too few rounds.
pub fn filter_rounds(
    tried: Vec<(usize, Vec<Round>)>,
    single: bool,
    mut sentinel: Option<&mut Sentinel>,
    timed: &mut FormTiming,
) -> Vec<usize> {
    let own_step = |(_, rounds): &(usize, Vec<Round>)| {
        let all = calibrations(rounds);
        sentinel.as_deref_mut().map_or_else(|| step(&all), |sentinel| sentinel.step(&all))
    };
    let step = tried.iter().map(own_step).fold(f64::INFINITY, f64::min);
    let steady_clock: Vec<Vec<Calibration>> =
        tried.iter().map(|(_, rounds)| steady_clock(rounds, step)).collect();
    let ratios: Vec<Option<f64>> =
        (0..tried.len()).map(|i| ratio(i, &steady_clock, timed)).collect();
    // Placements share their calibration.
    let all: Vec<Calibration> = steady_clock.iter().flatten().copied().collect();
    timed.clock_errors.push(TscClock::error(&all));
    let mut waiting = Vec::new();
    for (((placement, rounds), steady_clock), ratio) in
        tried.into_iter().zip(steady_clock).zip(ratios)
    {
        let Some(ratio) = ratio else {
            waiting.push(placement);
            continue;
        };
        let all = calibrations(&rounds);
        let mut uncontended = vec![true; all.len()];
        if let Some(sentinel) = sentinel.as_deref_mut() {
            sentinel.learn(&steady_clock, ratio);
            uncontended = sentinel.uncontended(&all, ratio);
        }
        let mut batch = timed.partial.remove(&placement).unwrap_or_default();
        batch.placement = placement;
        for ((round, uncontended), steady_clock) in
            rounds.iter().zip(uncontended).zip(TscClock::steady(&all, step))
        {
            match (uncontended, steady_clock) {
                // A slower clock makes the sentinel longer, too.
                (_, false) => timed.clock_changed += 1,
                (false, true) => timed.contended += 1,
                (true, true) => {
                    timed.accepted += 1;
                    batch.long.push(ratio * round.long);
                    batch.short.push(if single { 0.0 } else { ratio * round.short });
                }
            }
        }
        timed.step = step * ratio;
        if 2 * batch.long.len() < rounds.len() {
            waiting.push(placement);
            timed.partial.insert(placement, batch);
        } else {
            timed.batches.push(batch);
        }
    }
    waiting
}

fn calibrations(rounds: &[Round]) -> Vec<Calibration> {
    rounds.iter().map(|r| r.calibration).collect()
}

/// The calibration of the rounds in which the clock was steady.
fn steady_clock(rounds: &[Round], step: f64) -> Vec<Calibration> {
    let all = calibrations(rounds);
    let steady_clock = TscClock::steady(&all, step);
    all.into_iter()
        .zip(steady_clock)
        .filter(|(_, steady_clock)| *steady_clock)
        .map(|(c, _)| c)
        .collect()
}

/// Cycles per tick of a placement, by its rounds and those of the others with the same clock. The
/// clock may have changed between placements.
fn ratio(index: usize, steady_clock: &[Vec<Calibration>], timed: &mut FormTiming) -> Option<f64> {
    let mut or_void =
        |ratio: Result<f64, NoRatio>| ratio.map_err(|why| timed.note_void(why.to_string())).ok();
    let own = or_void(TscClock::cycles_per_tick(&steady_clock[index]))?;
    let same = |rounds: &&Vec<Calibration>| {
        TscClock::cycles_per_tick(rounds).is_ok_and(|r| (r / own - 1.0).abs() <= SAME_CLOCK)
    };
    let together: Vec<Calibration> = steady_clock.iter().filter(same).flatten().copied().collect();
    or_void(TscClock::cycles_per_tick(&together))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four rounds of a run of 1,000 and 500 cycles, at so many cycles a tick.
    fn rounds(cycles_per_tick: f64) -> Vec<Round> {
        let t = |cycles: f64| cycles / cycles_per_tick;
        let calibration = Calibration {
            add: (t(2304.0) + 80.0, t(256.0) + 80.0),
            multiply: Some((t(3456.0) + 80.0, t(384.0) + 80.0)),
            sentinel: (t(979.0) + 80.0, t(979.0) + 80.0),
        };
        let mut all = Vec::new();
        for i in 0..8 {
            let mut calibration = calibration;
            // The counter advances by less than a tick.
            calibration.add.0 += 0.1 * f64::from(i % 2);
            all.push(Round { long: t(1000.0), short: t(500.0), calibration });
        }
        all
    }

    fn timed() -> FormTiming {
        FormTiming { tolerance: 0.008, between: 500.0, ..FormTiming::default() }
    }

    #[test]
    fn a_clock_that_changes_between_placements_changes_no_cycles() {
        let tried =
            vec![(0, rounds(1.05)), (1, rounds(1.24)), (2, rounds(1.29)), (3, rounds(1.05))];
        let mut timed = timed();
        let mut sentinel = Sentinel::default();
        assert!(filter_rounds(tried, false, Some(&mut sentinel), &mut timed).is_empty());
        assert_eq!((timed.batches.len(), timed.accepted, timed.contended), (4, 32, 0));
        assert!((timed.cycles().unwrap() - 1.0).abs() < 1e-3, "{:?}", timed.cycles());
    }

    #[test]
    fn rounds_in_which_the_clock_changed_are_dropped() {
        let mut placement = rounds(1.24);
        placement.splice(2..4, rounds(1.05).into_iter().take(2));
        let mut timed = timed();
        assert!(filter_rounds(vec![(0, placement)], false, None, &mut timed).is_empty());
        assert_eq!((timed.accepted, timed.clock_changed), (6, 2));
    }

    #[test]
    fn uncontended_rounds_of_two_tries_make_a_batch() {
        let shared = || {
            let mut all = rounds(1.0);
            all.iter_mut().skip(2).for_each(|r| r.calibration.sentinel.1 += 200.0);
            all
        };
        let (mut timed, mut sentinel) = (timed(), Sentinel::default());
        assert_eq!(filter_rounds(vec![(7, shared())], false, Some(&mut sentinel), &mut timed), [7]);
        assert!(
            filter_rounds(vec![(7, shared())], false, Some(&mut sentinel), &mut timed).is_empty()
        );
        assert_eq!((timed.batches.len(), timed.accepted, timed.contended), (1, 4, 12));
    }
}
