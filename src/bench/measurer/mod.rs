//! The block measurer: measures one block and fills its document.
//!
//! | file | concern |
//! |---|---|
//! | `setup` | initial values, pages and a way to repeat with which a block's copies run |
//! | `runnable` | measures a block that may run, within its limits |
//! | `looped` | the loop form of a block that is no loop body |

mod looped;
mod runnable;
mod setup;

use super::Options;
pub use super::results::rejected;
use super::results::{empty, fail};
use super::settings::{MeasuredOn, Settings};
use crate::clock::Sentinel;
use crate::initial::{Failure, Why};
use crate::measurement::{Assumed, FaultLocation, Measurement, Outcome, Status};
use crate::runner::{MXCSR_FAST, MXCSR_GRADUAL};
use crate::selftest;
use crate::timer::Timer;
use isa::code::Block;
use std::time::{Duration, Instant};
use tma::Result;

/// Note on the contention check where the core's width is unknown.
const NARROW: &str = "; by a sentinel of fewer instructions a cycle than the core may do, since its width is not known: a \
                      sibling thread that needs no more than the rest does not show";

/// Blocks that share a worker at most, though none of them can learn an address. Starting one takes as long as
/// about ten quick blocks.
const SHARE_A_WORKER: u32 = 128;

/// Measures blocks, one after the other, in one sandbox. Belongs to its thread.
///
/// ```
/// use bench::{BlockMeasurer, Options, Status};
/// use isa::code::{Block, parse_hex};
///
/// // imul rax, rax
/// let block = Block::decode(&parse_hex("48 0f af c0")?)?;
/// let measurement = BlockMeasurer::new(Options::quick()).measure(&block)?;
/// assert_eq!(measurement.block.instructions[0].text, "imul rax,rax");
/// match (measurement.status, &measurement.throughput) {
///     // Each iteration needs the result of the one before: 3 cycles or more (uops.info).
///     (Status::Ok, Some(throughput)) => assert!(throughput.cycles > 2.0),
///     // A noisy machine: the reason is in the document.
///     _ => assert!(measurement.reason.is_some()),
/// }
///
/// // An instruction that would leave the sandbox is never run.
/// let syscall = Block::decode(&parse_hex("0f 05")?)?;
/// assert_eq!(BlockMeasurer::new(Options::quick()).measure(&syscall)?.status, Status::Rejected);
/// # Ok::<(), tma::Error>(())
/// ```
pub struct BlockMeasurer {
    pub(super) timer: Timer,
    /// Time limit of later blocks, if earlier than their own limits.
    end: Option<Instant>,
}

impl BlockMeasurer {
    /// A measurer; the sandbox starts with the first block.
    pub fn new(options: Options) -> Self {
        Self { timer: Timer::new(options), end: None }
    }

    /// The core that is measured on.
    pub fn core(&self) -> &tma::Core {
        &self.timer.options.core
    }

    /// The layers that protect the host from blocks.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn layers(&mut self) -> Result<crate::Layers> {
        self.timer.runner.layers()
    }

    /// The address of the worker's region, which is hidden from blocks.
    #[cfg(test)]
    pub(super) fn region(&mut self) -> u64 {
        self.timer.runner.worker().expect("a sandbox").base()
    }

    /// Reports to `progress` from now on, which can also cancel the next block.
    pub fn set_progress(&mut self, progress: super::Progress) {
        self.timer.options.progress = progress;
    }

    /// Limits how long each block may wait for an uncontended core.
    pub fn set_budget(&mut self, budget: Duration) {
        self.timer.options.budget = budget;
    }

    /// Whether subnormals are computed exactly from now on.
    pub fn set_gradual_underflow(&mut self, exact: bool) {
        self.timer.options.gradual_underflow = exact;
    }

    /// Ends later blocks at `end` at the latest.
    pub fn set_end(&mut self, end: Option<Instant>) {
        self.end = end;
    }

    /// Fixes the initial values of the next blocks.
    pub fn set_values(&mut self, values: super::Values) {
        self.timer.options.values = Some(values);
    }

    /// Current core cycles per tick of the time-stamp counter; `None` under contention.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn cycles_per_tick(&mut self) -> Result<Option<f64>> {
        self.timer.runner.cycles_per_tick()
    }

    /// Pins the calling thread to the processor of the worker, which shortens commands to the sandbox.
    pub fn pin_to_worker_cpu(&mut self) {
        self.timer.runner.pin_to_worker_cpu();
    }

    /// Measures one block.
    ///
    /// # Errors
    /// The sandbox cannot be started. Failures of the block are in the document.
    pub fn measure(&mut self, block: &Block) -> Result<Measurement> {
        let timer = &mut self.timer;
        let mut measurement = empty(block, timer.options.address, &timer.options.core);
        measurement.machine = Some(MeasuredOn::on(&timer.options.core));
        measurement.settings = Some(timer.settings());
        if let Some(refusal) = block.refusal() {
            measurement.distrust(Status::Rejected, refusal.reason, false);
            let instruction = Some(refusal.instruction);
            measurement.location = Some(FaultLocation { instruction, ..FaultLocation::default() });
            return Ok(measurement);
        }
        if timer.runner.suspicious {
            timer.runner.canary()?;
            timer.runner.suspicious = false;
        }
        let start = Instant::now();
        timer.deadline = start + timer.options.budget;
        timer.runner.mxcsr =
            if timer.options.gradual_underflow { MXCSR_GRADUAL } else { MXCSR_FAST };
        timer.runner.select_sentinel(selftest::ensure)?;
        // The self-test may have answered now.
        measurement.machine = Some(MeasuredOn::on(&timer.options.core));
        timer.source.select_clock(&mut timer.runner, &timer.options)?;
        measurement.sandbox = timer.runner.layers()?.missing;
        let sentinel = timer.runner.sentinel;
        let outcome = timer.measure_within_limit(block, self.end, &mut measurement);
        // Later commands do not count for the block.
        let limit = std::mem::take(&mut timer.runner.limit);
        let failed = !matches!(outcome, Ok(Ok(())));
        timer.separate(block, failed, sentinel);
        measurement.settings = Some(timer.settings());
        if let Err(failure) = outcome? {
            timer.runner.suspicious = true;
            let failure = match timer.options.progress.is_cancelled() {
                true => Failure::of_block(Why::Interrupted),
                false => failure,
            };
            fail(&mut measurement, &failure);
            if failure.reason == Why::Late && !limit.was_stopped() {
                // None of its runs took long: the machine is busy, and the block may well run.
                measurement.status = Status::Unstable;
            }
        }
        if limit.is_over() && measurement.status != Status::Ok {
            let reason = measurement.reason.take().unwrap_or_default();
            let took = start.elapsed().as_millis();
            measurement.reason = Some(format!("its time was up after {took} ms: {reason}"));
        }
        timer.doubt_contention(&mut measurement);
        Ok(measurement)
    }

    /// Makes the self-test of the core, unless it was made.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn self_test(&mut self) -> Result<()> {
        self.timer.runner.select_sentinel(selftest::ensure)
    }
}

impl Timer {
    fn settings(&self) -> Settings {
        Settings::of(&self.options, self.source.clock_name(), self.runner.cpu())
    }

    /// Ends a block: the next one gets a fresh worker if this one `failed`, could learn where the harness is, or
    /// used a program's own memory. The sentinel then forgets what it learned from that worker.
    ///
    /// A block that finds the harness in the worker's memory can take the worker over and falsify what it
    /// reports. It then falsifies its own result only, because that worker runs no other block.
    fn separate(&mut self, block: &Block, failed: bool, before: Sentinel) {
        let untrusted = failed || block.can_learn_addresses() || self.options.snapshot.is_some();
        if untrusted {
            self.runner.sentinel = before;
        }
        if untrusted || self.runner.blocks >= SHARE_A_WORKER {
            self.runner.discard();
        }
        // Also where it was replaced during the block.
        self.runner.blocks = self.runner.blocks.max(1);
    }

    /// Contention shows only in part if the core's width is unknown.
    fn doubt_contention(&self, measurement: &mut Measurement) {
        let width = self.options.core.answers().and_then(|answers| answers.width);
        if width.is_some() || !self.options.sentinel {
            return;
        }
        let found = measurement.assumptions.iter_mut().find(|a| a.name == Assumed::Contention);
        if let Some(found) = found.filter(|found| found.outcome == Outcome::Held) {
            found.outcome = Outcome::Unchecked;
            found.how += NARROW;
        }
    }
}
