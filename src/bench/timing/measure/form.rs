//! A form's code in the worker, and the segments of its long and short runs.

use crate::Options;
use crate::harness::Program;
use crate::initial::{Failure, explain};
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::Ended;
use tma::Result;

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
}
