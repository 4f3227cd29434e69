//! Long and short runs of a form in the sandbox, as counting needs them.
//!
//! A command is a warm-up of both runs, then N of one of them with sentinels and calibration chains
//! in between. Long and short commands are otherwise identical, including dithers, so that all of that
//! cancels in the difference. Commands are short, so that contention affects few of them; without
//! sentinels they are long.

use super::{Runs, Which};
use crate::clock::Calibration;
use crate::runner::{Runner, Segment};
use crate::sandbox::Ended;
use crate::timing::measure::Form;
use tma::Result;

/// Runs between two sentinels.
const CHUNK: usize = 4;
/// Most chunks in a command.
const CHUNKS: usize = 16;
/// Ticks that the runs of a command should take.
const TICKS: f64 = 200_000.0;
/// Ticks of a command without sentinels, and its most runs.
const LONG_TICKS: f64 = 10_000_000.0;
const RUNS: usize = 2000;
/// Segments of a command: sentinel, calibration chains, long and short run.
const SENTINEL: usize = 4;
const CHAIN: [usize; 2] = [0, 1];
const LONG: usize = 5;
const SHORT: usize = 6;

/// Number of runs in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Chunks of runs between sentinels.
    Chunks(usize),
    /// Runs only.
    Bare(usize),
}

impl Shape {
    /// The shape for runs of `ticks`.
    fn for_ticks(ticks: f64, sentinel: bool) -> Self {
        if sentinel {
            Self::Chunks(((TICKS / ticks / CHUNK as f64) as usize).clamp(1, CHUNKS))
        } else {
            Self::Bare(((LONG_TICKS / ticks) as usize).clamp(CHUNK, RUNS))
        }
    }

    fn runs(self) -> usize {
        match self {
            Self::Chunks(chunks) => chunks * CHUNK,
            Self::Bare(runs) => runs,
        }
    }
}

/// A form in the sandbox.
pub struct FormRuns<'a> {
    runner: &'a mut Runner,
    form: &'a Form,
    shape: Shape,
    dithers: Vec<u16>,
}

impl<'a> FormRuns<'a> {
    /// Times the form, whose code is installed, to choose the size of commands; with `sentinel`, commands
    /// check for contention. Returns how the run ended if it did not complete.
    pub fn new(
        runner: &'a mut Runner,
        form: &'a Form,
        sentinel: bool,
    ) -> Result<std::result::Result<Self, Ended>> {
        let segments = segments(runner, form, 0);
        let (ended, ticks) = runner.run(&segments, &[(LONG, 1); 3])?;
        if ended != Ended::Done {
            return Ok(Err(ended));
        }
        let long = ticks.last().map_or(1.0, |t| f64::from(*t)).max(1.0);
        let shape = Shape::for_ticks(long, sentinel);
        let most = plan(Which::Long, shape).len();
        let dithers = (0..most).map(|_| 1 + (runner.random() % 100) as u16).collect();
        Ok(Ok(Self { runner, form, shape, dithers }))
    }
}

fn segments(runner: &Runner, form: &Form, placement: usize) -> Vec<Segment> {
    let (long, short) = form.pair(placement);
    let mut all = runner.clock_segments().to_vec();
    all.extend([long, short]);
    all
}

/// The segments of a command, in order.
fn plan(which: Which, shape: Shape) -> Vec<usize> {
    let body = match which {
        Which::Long => LONG,
        Which::Short => SHORT,
    };
    let mut plan = vec![LONG, SHORT, LONG, SHORT];
    match shape {
        Shape::Bare(runs) => plan.extend(std::iter::repeat_n(body, runs)),
        Shape::Chunks(chunks) => {
            for _ in 0..chunks {
                plan.push(SENTINEL);
                plan.extend([body; CHUNK]);
                plan.extend([SENTINEL, CHAIN[0], CHAIN[1]]);
            }
        }
    }
    plan
}

/// The calibration rounds in the ticks of a command.
fn rounds(ticks: &[u32], shape: Shape) -> Vec<Calibration> {
    let Shape::Chunks(chunks) = shape else { return Vec::new() };
    let warm = ticks.len().saturating_sub(chunks * (CHUNK + 4));
    ticks[warm..]
        .chunks_exact(CHUNK + 4)
        .map(|t| {
            let tick = |i: usize| f64::from(t[i]);
            Calibration {
                add: (tick(CHUNK + 2), tick(CHUNK + 3)),
                multiply: None,
                sentinel: (tick(0), tick(CHUNK + 1)),
            }
        })
        .collect()
}

impl Runs for FormRuns<'_> {
    fn process(&mut self) -> Result<i32> {
        Ok(self.runner.worker()?.process())
    }

    fn placements(&self) -> usize {
        self.form.placements()
    }

    fn between(&self) -> f64 {
        self.form.between_whole_runs()
    }

    fn runs(&self) -> f64 {
        self.shape.runs() as f64
    }

    fn run(
        &mut self,
        placement: usize,
        which: Which,
    ) -> Result<std::result::Result<Vec<Calibration>, Ended>> {
        let segments = segments(self.runner, self.form, placement);
        let plan: Vec<(usize, u16)> =
            plan(which, self.shape).into_iter().zip(self.dithers.iter().copied()).collect();
        let (ended, ticks) = self.runner.run(&segments, &plan)?;
        if ended != Ended::Done || ticks.len() != plan.len() {
            return Ok(Err(ended));
        }
        Ok(Ok(rounds(&ticks, self.shape)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_commands_differ_only_in_the_runs_between_sentinels() {
        for shape in [Shape::Chunks(3), Shape::Bare(12)] {
            let (long, short) = (plan(Which::Long, shape), plan(Which::Short, shape));
            let differ: Vec<_> = long.iter().zip(&short).filter(|(a, b)| a != b).collect();
            assert_eq!(long.len(), short.len());
            assert_eq!(differ, vec![(&LONG, &SHORT); shape.runs()]);
        }
    }

    #[test]
    fn the_longest_commands_fit_the_schedule_of_the_worker() {
        use crate::sandbox::layout::SCHEDULE_MAX;
        for sentinel in [true, false] {
            assert!(plan(Which::Long, Shape::for_ticks(1.0, sentinel)).len() <= SCHEDULE_MAX);
        }
    }

    #[test]
    fn sentinels_and_chains_are_found_in_the_ticks() {
        // One chunk: warm-up 4, sentinel 700, four runs, sentinel 710, chains 2300 and 260.
        let ticks = [1, 2, 3, 4, 700, 9, 9, 9, 9, 710, 2300, 260];
        let found = rounds(&ticks, Shape::Chunks(1));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].sentinel, (700.0, 710.0));
        assert_eq!(found[0].add, (2300.0, 260.0));
    }
}
