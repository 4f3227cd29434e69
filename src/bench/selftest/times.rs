//! Runs tests in the sandbox: cycles of each, on the clock of a chain of additions.

use super::questions::Question;
use crate::harness::emitter::Emitter;
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::{Ended, layout as at};
use crate::timing::clock::{Calibration, TscClock};
use std::collections::BTreeMap;
use tma::{Error, Result};

/// Tests of a command: each has a long and a short run, and the clock has its segments.
const TOGETHER: usize = 12;
/// Cycles between the long and the short run: the counter of some virtual machines advances 40 at
/// once.
const CYCLES: usize = 2400;
/// Iterations of the short run.
const SHORT: u32 = 2;
/// Rounds; the first ones warm up.
const ROUNDS: usize = 32;
const WARM: usize = 2;
/// The clock's segments that are run: both lengths of both chains.
const CHAINS: [usize; 4] = [0, 1, 2, 3];

/// Cycles of an iteration of each test, the least of all attempts: disturbance only slows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    /// Attempts so far.
    pub attempts: u32,
    /// By the test's name.
    pub cycles: BTreeMap<String, f64>,
}

impl Times {
    /// Cycles of a test.
    pub fn get(&self, question: Question) -> Option<f64> {
        self.cycles.get(&question.name()).copied()
    }

    /// Instructions a cycle in a test.
    pub fn rate(&self, question: Question) -> Option<f64> {
        Some(question.instructions() as f64 / self.get(question)?)
    }

    /// Takes over what another attempt found faster.
    pub fn merge(&mut self, tried: &Self) {
        for (name, cycles) in &tried.cycles {
            let own = self.cycles.entry(name.clone()).or_insert(f64::INFINITY);
            *own = own.min(*cycles);
        }
    }
}

/// Runs all tests once.
///
/// # Errors
/// The sandbox cannot be started, or the tests did not run in it.
pub fn of(runner: &mut Runner, questions: &[Question]) -> Result<Times> {
    let mut times = Times::default();
    for some in questions.chunks(TOGETHER) {
        times.cycles.extend(command(runner, some)?);
    }
    Ok(times)
}

fn command(runner: &mut Runner, questions: &[Question]) -> Result<Vec<(String, f64)>> {
    let mut segments = runner.clock_segments().to_vec();
    let clock = segments.len();
    let mut start = BLOCK_CODE;
    let mut repeats = Vec::new();
    for question in questions {
        let mut code = Emitter::at(start);
        question.segment(&mut code);
        let entry = start;
        let bytes = code.into_bytes();
        start = (start + bytes.len()).next_multiple_of(64) + 64;
        runner.worker()?.write(entry, &bytes);
        let between = CYCLES.div_ceil(question.about()).max(2) as u32;
        segments.push(Segment { entry, repeat: SHORT + between });
        segments.push(Segment { entry, repeat: SHORT });
        repeats.push(f64::from(between));
    }
    let round: Vec<usize> = CHAINS.into_iter().chain(clock..segments.len()).collect();
    let rounds = ROUNDS.min(at::SCHEDULE_MAX / round.len());
    let plan: Vec<(usize, u16)> = (0..rounds)
        .flat_map(|_| round.iter())
        .map(|segment| (*segment, 1 + (runner.random() % 100) as u16))
        .collect();
    let (ended, ticks) = runner.run(&segments, &plan)?;
    if ended != Ended::Done || ticks.len() != plan.len() {
        runner.discard();
        return Err(Error::failed("the self-test did not run in the sandbox"));
    }
    let own = |place: usize| -> Vec<f64> {
        let rounds = ticks.chunks_exact(round.len()).skip(WARM);
        rounds.map(|round| f64::from(round[place])).collect()
    };
    let ticks = |place: usize| calm(own(place));
    let chains = Calibration {
        add: (ticks(0), ticks(1)),
        multiply: Some((ticks(2), ticks(3))),
        ..Calibration::default()
    };
    // Two, so that the multiply chain is compared.
    let ratio = TscClock::cycles_per_tick(&[chains; 2]).map_err(Error::failed)?;
    let cycles = |i: usize| {
        let places = [CHAINS.len() + 2 * i, CHAINS.len() + 2 * i + 1];
        // The fast rounds of a random test would be those with fewer mispredictions.
        let [long, short] = match questions[i].is_random() {
            true => places.map(|place| crate::timing::stats::median(&own(place))),
            false => places.map(ticks),
        };
        (long - short) * ratio / repeats[i]
    };
    let all = questions.iter().enumerate().map(|(i, q)| (q.name(), cycles(i)));
    Ok(all.filter(|(_, cycles)| cycles.is_finite() && *cycles > 0.0).collect())
}

/// The mean of the lower half of `ticks`: a neighbour only slows, and a mean of several is finer
/// than the counter's step.
fn calm(mut ticks: Vec<f64>) -> f64 {
    ticks.sort_by(f64::total_cmp);
    let half = &ticks[..ticks.len().div_ceil(2)];
    crate::timing::stats::mean(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_rounds_are_left_out_and_steps_of_the_counter_averaged() {
        assert_eq!(calm(vec![1000.0, 1026.0, 9000.0, 1000.0, 1026.0, 2000.0]), 3026.0 / 3.0);
    }

    #[test]
    fn the_fastest_attempt_counts() {
        let of = |cycles| {
            let name = Question::Mix(0).name();
            Times { attempts: 1, cycles: BTreeMap::from([(name, cycles)]) }
        };
        let mut times = Times::default();
        for cycles in [42.0, 30.0, 61.0] {
            times.merge(&of(cycles));
        }
        assert_eq!(times.get(Question::Mix(0)), Some(30.0));
        assert_eq!(times.get(Question::Nops), None);
    }
}
