//! Timing: a form of a block is a long and a short run in several placements of the code, timed in passes: rounds of
//! sentinel, long run, short run and calibration chains of every placement. A first look gives its approximate time.
//!
//! | file | concern |
//! |---|---|
//! | `copies` | copies of a block: how many, how they repeat, where they start; and their forms |
//! | `whole_loops` | forms of loops with their own exit, and of other whole code |

pub(crate) mod copies;
mod whole_loops;

pub use copies::{Copies, Repeat, looped, unrolled};
pub use whole_loops::{Closed, EIGHTHS, Iterations, closed, lengths, repeated, whole};

use super::form_timing::FormTiming;
use super::round_filter::{Round, filter_rounds};
use crate::Options;
use crate::clock::{Calibration, TscClock};
use crate::harness::Program;
use crate::initial::{Failure, explain};
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::layout::mail;
use crate::sandbox::{Ended, layout as at};
use tma::Result;

/// Rounds of a first look.
const ROUGH: usize = 3;

/// Rounds that only warm up.
const WARM: usize = 2;
/// Attempts at enough uncontended rounds of a placement before the pass counts as contended.
const ATTEMPTS: usize = 2;

/// Untimed rounds in which memory predictors learn a block. On Zen 5 that takes 4 to 20 rounds, during which
/// loads do not wait yet for the stores before them.
const LEARN: usize = 16;

/// Segments of one command, if placements share it.
const TOGETHER: usize = 256;

/// A long and a short run of each placement.
pub struct Form {
    /// The code of each placement.
    pub(super) programs: Vec<Program>,
    /// Long and short segment of each.
    pub(super) pairs: Vec<(Segment, Segment)>,
    /// Iterations of the block between long and short.
    pub(super) between: f64,
    /// Iterations between long and short, including the repetitions before the time stamp.
    pub(super) untimed_too: f64,
    /// Whether only the long run counts.
    pub(super) single: bool,
    /// Whether memory predictors have to learn it: it writes memory.
    pub(super) learns: bool,
}

impl Form {
    /// A form without placements yet: iterations between long and short, and the same with those before
    /// the time stamp.
    pub(super) fn of(between: f64, untimed_too: f64) -> Self {
        let (programs, pairs) = (Vec::new(), Vec::new());
        Self { programs, pairs, between, untimed_too, single: false, learns: false }
    }

    /// The long and the short run of a placement.
    pub fn pair(&self, placement: usize) -> (Segment, Segment) {
        self.pairs[placement % self.pairs.len()]
    }

    /// Number of placements.
    pub fn placements(&self) -> usize {
        self.pairs.len()
    }

    /// Iterations of the block between the two runs from their first to their last instruction, including
    /// the repetitions before the time stamp.
    pub fn between_whole_runs(&self) -> f64 {
        self.untimed_too
    }

    /// Uses only the long run: `cycles(u)/u`, including overhead.
    pub fn forget_short(&mut self, iterations: usize) {
        self.between = iterations as f64;
        self.single = true;
    }

    /// Writes the code into the sandbox.
    pub fn install(&self, runner: &mut Runner) -> Result<()> {
        let worker = runner.worker()?;
        for program in &self.programs {
            worker.write(program.start, &program.bytes);
        }
        Ok(())
    }

    /// Runs each placement's long segment once; more pages may be found by that.
    pub fn rehearse(&self, runner: &mut Runner, options: &Options) -> Result<Option<Failure>> {
        let segments: Vec<Segment> = self.pairs.iter().map(|p| p.0).collect();
        let schedule: Vec<_> = (0..segments.len()).map(|i| (i, 1)).collect();
        let (ended, _) = runner.run(&segments, &schedule)?;
        if ended == Ended::Done {
            return Ok(None);
        }
        Ok(Some(self.explained(&ended, options)))
    }

    /// The first free offset after its code.
    pub fn end(&self) -> usize {
        self.programs.iter().map(Program::end).max().unwrap_or(BLOCK_CODE).next_multiple_of(64)
    }

    /// Where and why the block failed.
    pub fn explained(&self, ended: &Ended, options: &Options) -> Failure {
        let offset = match ended {
            Ended::Fault(f) | Ended::MapRefused(f) | Ended::TooManyPages(f) => f.offset,
            _ => None,
        };
        let holds = |p: &&Program| offset.is_some_and(|o| (p.start..p.end()).contains(&o));
        let program = self.programs.iter().find(holds).unwrap_or(&self.programs[0]);
        explain(ended, program, options.pages_allowed())
    }

    /// Approximate cycles per iteration from a few runs, regardless of contention; at least 0.05. First
    /// the copies run `longest` times without a pause, which may fail or find more pages; `last` runs after
    /// all of them.
    ///
    /// # Errors
    /// The sandbox cannot be started. A block that does not run is a [`Failure`].
    pub fn rough(
        &self,
        runner: &mut Runner,
        options: &Options,
        longest: Option<u32>,
        last: Option<&Program>,
    ) -> Result<std::result::Result<f64, Failure>> {
        self.install(runner)?;
        let (long, short) = self.pairs[0];
        let mut segments = runner.clock_segments().to_vec();
        let clock = segments.len();
        segments.extend([long, short]);
        // The short and the long run, and the chains that calibrate the tick.
        let mut plan = [clock + 1, clock, 0, 1].repeat(ROUGH);
        if let Some(repeat) = longest {
            plan.insert(0, segments.len());
            segments.push(Segment { repeat, ..long });
        }
        if let Some(program) = last {
            runner.worker()?.write(program.start, &program.bytes);
            plan.push(segments.len());
            segments.push(Segment { entry: program.start, repeat: 1 });
        }
        let plan: Vec<_> = plan.into_iter().map(|segment| (segment, 1)).collect();
        let (ended, ticks) = runner.run(&segments, &plan)?;
        if ended != Ended::Done || ticks.len() != plan.len() {
            return Ok(Err(self.explained(&ended, options)));
        }
        // Contention only makes it longer.
        let least = |wanted: usize| {
            let own = plan.iter().zip(&ticks).filter(|((segment, _), _)| *segment == wanted);
            own.map(|(_, ticks)| f64::from(*ticks)).fold(f64::INFINITY, f64::min)
        };
        let chains = Calibration { add: (least(0), least(1)), ..Calibration::default() };
        let ratio = TscClock::cycles_per_tick(&[chains]).unwrap_or(1.0);
        let ticks = least(clock) - least(clock + 1);
        Ok(Ok((ticks * ratio / self.between).max(0.05)))
    }
}

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

/// A pass to make over every placement of a form.
pub struct PassOf<'a> {
    /// The form.
    pub form: &'a Form,
    /// Runs it.
    pub runner: &'a mut Runner,
    /// Options of the measurement.
    pub options: &'a Options,
    /// Samples of each placement.
    pub rounds: usize,
    /// Gets the samples.
    pub timed: &'a mut FormTiming,
}

/// Measures core cycles of a form.
pub trait Clock {
    /// Name in reports.
    fn name(&self) -> &'static str;
    /// One pass: a batch of accepted samples of every placement, unless the core is contended.
    fn pass(&mut self, of: PassOf<'_>) -> Result<Pass>;
}

impl Clock for TscClock {
    fn name(&self) -> &'static str {
        "tsc"
    }

    fn pass(&mut self, of: PassOf<'_>) -> Result<Pass> {
        let PassOf { form, runner, options, rounds, timed } = of;
        (timed.between, timed.tolerance) = (form.between, options.tolerance);
        if timed.waiting.is_empty() {
            timed.waiting = (0..form.pairs.len()).collect();
            if form.learns
                && timed.passes == 0
                && options.passes > 1
                && let Some(ended) = form.learn(runner)?
            {
                return Ok(Pass::Failed(form.explained(&ended, options)));
            }
        }
        for _ in 0..ATTEMPTS {
            let mut tried = Vec::new();
            for placements in timed.waiting.chunks(together(rounds)) {
                match form.rounds(runner, placements, rounds)? {
                    Ok(all) => tried.extend(placements.iter().copied().zip(all)),
                    Err(ended) => return Ok(Pass::Failed(form.explained(&ended, options))),
                }
            }
            let sentinel = options.sentinel.then_some(&mut runner.sentinel);
            timed.waiting = filter_rounds(tried, form.single, sentinel, timed);
            if timed.waiting.is_empty() {
                timed.passes += 1;
                return Ok(Pass::Done);
            }
        }
        Ok(Pass::Contended)
    }
}
