//! Core cycles as the PMU counts them.
//!
//! The kernel counts a whole command of the worker, in user mode; the command with N long runs less
//! the one with N short runs are the cycles of the iterations between. Nothing is converted: a
//! changing clock frequency, interrupts and time that a hypervisor takes away are not in it. Time
//! stamps are still taken, for the sentinels alone.

use super::{Counting, FormRuns, Runs, Sample, Stop, sample, uncontended};
use crate::timing::form_timing::Batch;
use crate::timing::measure::{Clock, Pass, PassOf};
use pmu::machine::Encoding;
use tma::Result;

/// Rounds of the time-stamp counter that one difference, which covers many runs, replaces.
const ROUNDS: usize = 8;
/// Most and least differences for each placement and pass.
const SAMPLES: (usize, usize) = (2, 8);
/// Tries for each of them.
const TRIES: usize = 3;

/// Core cycles as the PMU counts them.
pub struct PmuClock {
    counting: Box<dyn Counting>,
    cycles: Encoding,
}

impl PmuClock {
    /// A clock that counts the event `cycles`.
    pub fn new(counting: Box<dyn Counting>, cycles: Encoding) -> Self {
        Self { counting, cycles }
    }

    /// Whether the worker can be counted.
    ///
    /// # Errors
    /// Why not.
    pub fn try_on(&mut self, process: i32) -> std::result::Result<(), Stop> {
        let opened = self.counting.open(process, &[self.cycles]);
        self.counting.close();
        opened.map_err(Stop::Refused)
    }

    /// Differences of one placement: those that had the core for themselves.
    fn placement(
        &mut self,
        runs: &mut dyn Runs,
        placement: usize,
        wanted: usize,
        sentinel: bool,
    ) -> Result<std::result::Result<Taken, Stop>> {
        let mut samples: Vec<Sample> = Vec::new();
        let mut good = 0;
        while samples.len() < wanted * TRIES && good < wanted {
            match sample(runs, self.counting.as_mut(), placement)? {
                Ok(sample) => samples.push(sample),
                Err(stop) => return Ok(Err(stop)),
            }
            good = accepted(&samples, sentinel).count();
        }
        if samples.iter().all(|s| !s.whole) {
            return Ok(Err(Stop::Starved));
        }
        let accepted: Vec<&Sample> = accepted(&samples, sentinel).collect();
        let of = |command: fn(&Sample) -> &Vec<i64>| {
            accepted.iter().map(|s| command(s)[0] as f64 / runs.runs()).collect()
        };
        let batch = Batch { placement, long: of(|s| &s.commands.0), short: of(|s| &s.commands.1) };
        Ok(Ok(Taken { batch, accepted: accepted.len(), dropped: samples.len() - accepted.len() }))
    }
}

/// The samples of one placement.
struct Taken {
    /// Cycles of a run and its share of what is around the runs of a command.
    batch: Batch,
    accepted: usize,
    dropped: usize,
}

/// Accepted samples: all counters ran, without contention.
fn accepted(samples: &[Sample], sentinel: bool) -> impl Iterator<Item = &Sample> {
    let uncontended = uncontended(samples, sentinel).into_iter();
    samples.iter().zip(uncontended).filter(|(s, c)| *c && s.whole).map(|(s, _)| s)
}

impl Clock for PmuClock {
    fn name(&self) -> &'static str {
        "pmu"
    }

    fn pass(&mut self, of: PassOf<'_>) -> Result<Pass> {
        let PassOf { form, runner, options, rounds, timed } = of;
        let wanted = (rounds / ROUNDS).clamp(SAMPLES.0, SAMPLES.1);
        let process = runner.worker()?.process();
        if let Err(refused) = self.counting.open(process, &[self.cycles]) {
            timed.note_void(Stop::Refused(refused).to_string());
            return Ok(Pass::Done);
        }
        (timed.between, timed.tolerance) = (form.between_whole_runs(), options.tolerance);
        let mut batches = Vec::new();
        let mut runs = match FormRuns::new(runner, form, options.sentinel)? {
            Ok(runs) => runs,
            Err(ended) => return Ok(Pass::Failed(form.explained(&ended, options))),
        };
        let mut outcome = Pass::Done;
        for placement in 0..form.placements() {
            match self.placement(&mut runs, placement, wanted, options.sentinel)? {
                Ok(taken) if 4 * taken.accepted >= 3 * wanted => {
                    timed.contended += taken.dropped;
                    batches.push(taken.batch);
                }
                Ok(taken) => {
                    timed.contended += taken.dropped;
                    outcome = Pass::Contended;
                    break;
                }
                Err(Stop::Ended(ended)) => {
                    outcome = Pass::Failed(form.explained(&ended, options));
                    break;
                }
                Err(stop) => {
                    timed.note_void(stop.to_string());
                    batches.clear();
                    break;
                }
            }
        }
        self.counting.close();
        if matches!(outcome, Pass::Done) && batches.len() == form.placements() {
            timed.passes += 1;
            timed.accepted += batches.iter().map(|b| b.long.len()).sum::<usize>();
            timed.batches.extend(batches);
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::tests::{Script, Scripted};
    use crate::timing::form_timing::FormTiming;

    const CYCLES: Encoding = Encoding {
        kind: 4,
        config: 0x3c,
        config1: 0,
        config2: 0,
        user_only: false,
        kernel_only: false,
    };

    /// Seven and a half cycles an iteration.
    fn clock(script: Script) -> (PmuClock, Scripted) {
        let rates = [(0x3c, 7.5)].into_iter().collect();
        let scripted = Scripted::new(Script { rates, ..script });
        let mut clock = PmuClock::new(Box::new(scripted.clone()), CYCLES);
        clock.try_on(1).expect("a PMU");
        clock.counting.open(1, &[CYCLES]).expect("a PMU");
        (clock, scripted)
    }

    #[test]
    fn cycles_are_those_of_the_iterations_between_and_disturbed_ones_are_dropped() {
        let (mut clock, mut runs) = clock(Script { contended: |n| n == 3, ..Script::default() });
        let taken = clock.placement(&mut runs, 0, 4, true).expect("ran").expect("counted");
        // 1000 and 400 iterations, and 777 cycles around either.
        assert_eq!(
            taken.batch,
            Batch { placement: 0, long: vec![8277.0; 4], short: vec![3777.0; 4] }
        );
        assert_eq!((taken.accepted, taken.dropped), (4, 1));
        let timed =
            FormTiming { between: 600.0, batches: vec![taken.batch], ..FormTiming::default() };
        assert_eq!(timed.cycles(), Some(7.5));
    }

    #[test]
    fn a_clock_without_a_counter_is_void_and_never_a_number() {
        let (mut clock, mut runs) = clock(Script { free: 0, ..Script::default() });
        let taken = clock.placement(&mut runs, 0, 4, true).expect("ran");
        assert_eq!(taken.err(), Some(Stop::Starved));
    }

    #[test]
    fn a_kernel_without_the_event_says_so() {
        let absent = std::collections::BTreeSet::from([0x3c]);
        let scripted = Scripted::new(Script { absent, ..Script::default() });
        let mut clock = PmuClock::new(Box::new(scripted), CYCLES);
        let why = clock.try_on(1).expect_err("refused").to_string();
        assert!(why.contains("refuses the event (no such file"), "{why}");
    }
}
