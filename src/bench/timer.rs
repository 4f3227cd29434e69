//! Times passes of a form: waits under contention, and repeats while they disagree.

use crate::counting::Source;
use crate::initial::{Failure, Why};
use crate::options::Options;
use crate::results::RARE_PASSES;
use crate::runner::Runner;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{Form, Pass};
use std::time::{Duration, Instant};
use tma::Result;

/// Contention often lasts less than a millisecond: the core is polled this long without a pause, then
/// with these pauses.
const BUSY_POLL: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_micros(300);

/// Times forms of one block after the other, in one sandbox.
pub struct Timer {
    /// The sandbox.
    pub runner: Runner,
    /// Options of the measurement.
    pub options: Options,
    /// Clock and counters.
    pub source: Source,
    /// When the current block's budget ends.
    pub deadline: Instant,
}

impl Timer {
    /// A timer; the sandbox starts with the first form.
    pub fn new(options: Options) -> Self {
        let runner =
            Runner::new(options.core.clone(), Source::cpu(&options), Source::inspect(&options));
        let source = Source::new(&options);
        Self { runner, options, source, deadline: Instant::now() }
    }

    /// Times passes of a form, waiting under contention and repeating while they disagree.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn timed(
        &mut self,
        form: &Form,
        passes: usize,
        rounds: usize,
        timed: &mut FormTiming,
    ) -> Result<Option<Failure>> {
        form.install(&mut self.runner)?;
        // Events are counted from the start of a command, time only from its last start.
        let rehearse = self.options.counts || self.source.clock().name() != "tsc";
        if rehearse && let Some(failure) = form.rehearse(&mut self.runner, &self.options)? {
            return Ok(Some(failure));
        }
        self.source.start_software_events(&mut self.runner, &self.options)?;
        let failure = self.passes(form, passes, rounds, timed)?;
        self.source.stop_software_events(&mut self.runner)?;
        Ok(failure)
    }

    fn passes(
        &mut self,
        form: &Form,
        passes: usize,
        rounds: usize,
        timed: &mut FormTiming,
    ) -> Result<Option<Failure>> {
        let before = self.runner.timeouts;
        let mut tried = 0;
        while tried < (passes * RARE_PASSES).max(passes + self.options.retries) {
            // The loop form and comparisons, which have fewer passes, may be less precise.
            let headline = passes > 1 && passes >= self.options.passes;
            let more = timed.is_rare() || (headline && timed.is_vague());
            let enough = timed.passes >= passes * if more { RARE_PASSES } else { 1 };
            if enough && timed.is_reproduced() {
                break;
            }
            if self.options.progress.is_cancelled() {
                return Ok(Some(Failure::of_block(Why::Interrupted)));
            }
            if self.runner.limit.is_over() && timed.passes > 0 {
                break;
            }
            self.options.progress.count_pass();
            // Do not count switches while waiting for an uncontended core.
            let switches = self.switches()?;
            let clock = self.source.clock();
            let pass = clock.pass(form, &mut self.runner, &self.options, rounds, timed)?;
            if let (Some(then), Some(now)) = (switches, self.switches()?) {
                timed.switches = Some(timed.switches.unwrap_or(0) + now.saturating_sub(then));
            }
            match pass {
                Pass::Done => tried += 1,
                Pass::Failed(failure) => return Ok(Some(failure)),
                Pass::Contended
                    if self.wait_for_idle_core()? || self.options.progress.is_cancelled() => {}
                Pass::Contended if self.runner.timeouts > before => {
                    return Ok(Some(Failure::of_block(Why::Taken)));
                }
                Pass::Contended => break,
            }
        }
        Ok(None)
    }

    /// Waits for an uncontended core, moving to another one where allowed. `false` when the block's budget
    /// is used up.
    fn wait_for_idle_core(&mut self) -> Result<bool> {
        let start = Instant::now();
        let mut polls = 0;
        let before = self.runner.timeouts;
        while Instant::now() < self.deadline
            && self.runner.timeouts == before
            && !self.runner.limit.is_spent()
        {
            if self.options.progress.is_cancelled() {
                return Ok(false);
            }
            if !self.options.sentinel {
                return Ok(true);
            }
            if self.runner.uncontended_share(6)? >= 0.75 {
                return Ok(self.runner.timeouts == before);
            }
            polls += 1;
            if polls % 16 == 0 {
                self.runner.next_cpu()?;
            }
            if start.elapsed() > BUSY_POLL {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(false)
    }

    /// The kernel's count of involuntary switches of the worker, if assumptions are checked.
    fn switches(&mut self) -> Result<Option<u64>> {
        let worker = self.runner.worker()?;
        Ok(if self.options.assumptions { worker.switches() } else { None })
    }
}
