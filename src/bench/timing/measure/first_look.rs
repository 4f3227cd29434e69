//! A first look at how long a form takes.

use super::form::Form;
use crate::Options;
use crate::clock::{Calibration, TscClock};
use crate::harness::Program;
use crate::initial::Failure;
use crate::runner::{Runner, Segment};
use crate::sandbox::Ended;
use tma::Result;

/// Rounds of a first look.
const ROUGH: usize = 3;

impl Form {
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
