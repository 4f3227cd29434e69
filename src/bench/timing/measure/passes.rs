//! Passes: rounds of sentinel, long run, short run and calibration chains of every placement.

use super::form::Form;
use crate::Options;
use crate::clock::Calibration;
use crate::initial::Failure;
use crate::runner::{Runner, Segment};
use crate::sandbox::layout::mail;
use crate::sandbox::{Ended, layout as at};
use crate::timing::form_timing::FormTiming;
use crate::timing::round_filter::{Round, filter_rounds};
use tma::Result;

/// Rounds that only warm up.
const WARM: usize = 2;
/// Attempts at enough uncontended rounds of a placement before the pass counts as contended.
const ATTEMPTS: usize = 2;

/// Untimed rounds in which memory predictors learn a block. On Zen 5 that takes 4 to 20 rounds, during which
/// loads do not wait yet for the stores before them.
const LEARN: usize = 16;

/// Segments of one command, if placements share it.
const TOGETHER: usize = 256;

/// The result of a pass.
#[derive(Debug)]
pub enum Pass {
    /// It has enough accepted rounds.
    Done,
    /// The core is contended.
    Contended,
    /// The block failed.
    Failed(Failure),
}

impl Form {
    /// One pass: a batch of accepted rounds of every placement, unless the core is contended.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn pass(
        &self,
        runner: &mut Runner,
        options: &Options,
        rounds: usize,
        timed: &mut FormTiming,
    ) -> Result<Pass> {
        (timed.between, timed.tolerance) = (self.between, options.tolerance);
        if timed.waiting.is_empty() {
            timed.waiting = (0..self.pairs.len()).collect();
            if self.learns
                && timed.passes == 0
                && options.passes > 1
                && let Some(ended) = self.learn(runner)?
            {
                return Ok(Pass::Failed(self.explained(&ended, options)));
            }
        }
        for _ in 0..ATTEMPTS {
            let mut tried = Vec::new();
            for placements in timed.waiting.chunks(together(rounds)) {
                match self.rounds(runner, placements, rounds)? {
                    Ok(all) => tried.extend(placements.iter().copied().zip(all)),
                    Err(ended) => return Ok(Pass::Failed(self.explained(&ended, options))),
                }
            }
            let sentinel = options.sentinel.then_some(&mut runner.sentinel);
            timed.waiting = filter_rounds(tried, self.single, sentinel, timed);
            if timed.waiting.is_empty() {
                timed.passes += 1;
                return Ok(Pass::Done);
            }
        }
        Ok(Pass::Contended)
    }

    /// Runs every placement untimed until memory predictors know its loads and stores.
    fn learn(&self, runner: &mut Runner) -> Result<Option<Ended>> {
        for pairs in self.pairs.chunks(mail::SEGMENTS_MAX / 2) {
            let segments: Vec<Segment> =
                pairs.iter().flat_map(|(long, short)| [*long, *short]).collect();
            let plan: Vec<_> = (0..segments.len() / 2)
                .flat_map(|i| [2 * i + 1, 2 * i].repeat(LEARN))
                .map(|segment| (segment, 1 + (runner.random() % 100) as u16))
                .take(at::SCHEDULE_MAX)
                .collect();
            let (ended, _) = runner.run(&segments, &plan)?;
            if ended != Ended::Done {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }

    /// The ticks of `count` rounds of each placement.
    fn rounds(
        &self,
        runner: &mut Runner,
        placements: &[usize],
        count: usize,
    ) -> Result<std::result::Result<Vec<Vec<Round>>, Ended>> {
        let mut segments = runner.clock_segments().to_vec();
        let (clock, count) = (segments.len(), count.min(at::SCHEDULE_MAX / 8 - WARM));
        let mut plan = Vec::new();
        for (i, placement) in placements.iter().enumerate() {
            let (long, short) = self.pairs[*placement];
            segments.extend([long, short]);
            plan_rounds(clock + 2 * i, count, &mut plan);
        }
        let dithered: Vec<_> =
            plan.iter().map(|s| (*s, 1 + (runner.random() % 100) as u16)).collect();
        let (ended, ticks) = runner.run(&segments, &dithered)?;
        if ended != Ended::Done || ticks.len() != plan.len() {
            return Ok(Err(ended));
        }
        let mut ticks = ticks.into_iter().map(f64::from);
        Ok(Ok(placements.iter().map(|_| read_rounds(count, &mut ticks)).collect()))
    }
}

/// Placements of `rounds` that share a command, which should take a fraction of a millisecond.
fn together(rounds: usize) -> usize {
    (TOGETHER / (7 * (rounds + WARM))).clamp(1, 8)
}

/// Interval in rounds of the multiply chains: at least three times, even with few rounds.
fn multiply_every(count: usize) -> usize {
    if count < 16 { 3 } else { 4 }
}

/// Rounds that warm up the short and the long run, then those of sentinel, short run, long run, sentinel, and
/// calibration chains in turn, where the segment `long` is the long run and the next one the short run.
fn plan_rounds(long: usize, count: usize, plan: &mut Vec<usize>) {
    plan.extend([long + 1, long].repeat(WARM));
    let every = multiply_every(count);
    for round in 0..count {
        plan.extend([4, long + 1, long, 4, 0, 1]);
        if round % every == 0 {
            plan.extend([2, 3]);
        }
    }
}

/// The rounds of [`plan_rounds`] without warm-up.
fn read_rounds(count: usize, ticks: &mut impl Iterator<Item = f64>) -> Vec<Round> {
    let mut ticks = ticks.skip(2 * WARM);
    let mut next = || ticks.next().unwrap_or(f64::NAN);
    let every = multiply_every(count);
    let mut all = Vec::with_capacity(count);
    for round in 0..count {
        let [before, short, long, behind, add_long, add_short] = [(); 6].map(|()| next());
        let multiply = (round % every == 0).then(|| (next(), next()));
        let calibration =
            Calibration { add: (add_long, add_short), multiply, sentinel: (before, behind) };
        all.push(Round { long, short, calibration });
    }
    all
}
