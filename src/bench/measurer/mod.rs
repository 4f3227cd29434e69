//! Measures one block and fills its document, within what a block may cost: as a loop where it is one, and as
//! straight copies.
//!
//! `setup` finds initial values, pages and a way to repeat.

mod setup;

pub use crate::timer::rejected;

use crate::clock::Sentinel;
use crate::closed_loop::ClosedLoop;
use crate::harness::RequiredState;
use crate::initial::run_setup::RunSetup;
use crate::initial::{Failure, Why};
use crate::measurement::{
    Assumed, FaultLocation, Forms, MeasuredOn, Measurement, Outcome, Settings, Status,
};
use crate::repeat::other_pages;
use crate::runner::{Limit, MXCSR_FAST, MXCSR_GRADUAL};
use crate::timer::{Timer, conclude, empty, fail, form_result};
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Copies, copies};
use crate::{Options, checks as assumptions, selftest};
use isa::code::Block;
use setup::REPEAT;
use std::time::{Duration, Instant};
use tma::Result;

/// Note on the contention check where the core's width is unknown.
const NARROW: &str = "; by a sentinel of fewer instructions a cycle than the core may do, since its width is not known: a \
                      sibling thread that needs no more than the rest does not show";

/// Blocks that share a worker at most, though none of them can learn an address. Starting one takes as long as
/// about ten quick blocks.
const SHARE_A_WORKER: u32 = 128;

/// Minimum cycles of a long run of few or fast copies, and its most repetitions.
const SHORTEST: f64 = 3000.0;
const MOST_REPEAT: f64 = 400.0;

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
    pub fn set_progress(&mut self, progress: crate::Progress) {
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
    pub fn set_values(&mut self, values: crate::Values) {
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

    /// Measures a block that may run, within its limits.
    fn measure_within_limit(
        &mut self,
        block: &Block,
        end: Option<Instant>,
        measurement: &mut Measurement,
    ) -> Result<std::result::Result<(), Failure>> {
        let own = Instant::now() + self.options.longest();
        self.runner.limit = Limit::until(end.map_or(own, |end| end.min(own)));
        self.runner.worker()?;
        self.runner.blocks += 1;
        let before = self.runner.timeouts;
        let mut outcome = self.measure_runnable(block, measurement)?;
        if outcome.is_err() && self.runner.timeouts > before && !self.runner.limit.is_over() {
            // The worker may have been descheduled rather than busy.
            self.runner.limit.forgive();
            outcome = self.measure_runnable(block, measurement)?;
        }
        Ok(outcome)
    }

    fn measure_runnable(
        &mut self,
        block: &Block,
        measurement: &mut Measurement,
    ) -> Result<std::result::Result<(), Failure>> {
        let required_state = RequiredState::of(block);
        self.runner.set_rip_offset(rip_offset(block, self.options.address));
        let whole =
            self.options.snapshot.as_ref().is_some_and(|snapshot| snapshot.is_whole_at(block));
        let (closed, not_run) = match self.closed_loop(block, &required_state)? {
            Some(Ok(closed)) => (Some(closed), None),
            Some(Err(why)) if whole || why == Why::Interrupted => {
                return Ok(Err(Failure::of_block(why)));
            }
            None if whole => {
                let why = "its first block ends in a call or jump elsewhere";
                return Ok(Err(Failure::of_block(why)));
            }
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        let copies = match whole {
            true => Err(Failure::of_block("a loop of several blocks has none")),
            false => self.measure_copies(block, &required_state, closed.as_ref(), measurement)?,
        };
        let Some(closed) = closed else {
            if let (Ok(()), Some(why)) = (&copies, not_run) {
                measurement.notes.push(format!(
                    "its own loop was not run: {why}; the times are of copies of the block"
                ));
            }
            return Ok(copies);
        };
        if let Err(failure) = copies {
            // The loop is the result; its straight copies fail for other reasons.
            self.runner.discard();
            self.runner.suspicious = true;
            let why = format!("no straight copies: {}", failure.reason);
            let unrolled = form_result(&FormTiming::default(), 0, Some(why));
            let looped = form_result(&closed.timed, closed.copies, None);
            measurement.forms = Some(Forms { unrolled, looped });
        }
        self.enter_loop(block, &closed, measurement)?;
        Ok(Ok(()))
    }

    /// Measures straight copies of the block: the headline, unless it was run as a loop.
    fn measure_copies(
        &mut self,
        block: &Block,
        required_state: &RequiredState,
        closed: Option<&ClosedLoop>,
        measurement: &mut Measurement,
    ) -> Result<std::result::Result<(), Failure>> {
        let (setup, (copies, how, rough)) = match self.find_setup(block, required_state)? {
            Ok(laid_out) => laid_out,
            Err(failure) => return Ok(Err(failure)),
        };
        let wanted = self.options.min_instructions.div_ceil(copies * block.instructions.len());
        let repeat = (self.options.cycles / (rough * copies as f64)).ceil().max(wanted as f64);
        // Short copies more often: the counter of some virtual machines advances 40 cycles at once.
        let most = (SHORTEST / (rough * copies as f64)).clamp(f64::from(REPEAT), MOST_REPEAT);
        let repeat = repeat.clamp(1.0, most) as u32;
        let run = Copies { number: copies, how, repeat };
        let offsets = copies::offsets(&self.options);
        let mut form = measure::unrolled(block, required_state, &setup, run, &offsets);
        if !self.options.two_factors {
            form.forget_short(repeat as usize * copies);
        }
        let mut timed = FormTiming::default();
        let (in_a_run, passes) = (run.in_a_run(), self.options.passes);
        if let Some(failure) = self.timed_plausibly(block, &form, in_a_run, passes, &mut timed)? {
            return Ok(Err(failure));
        }
        if self.runner.pages().as_ref() != Some(&setup.pages) {
            let why = match self.runner.limit.is_over() {
                true => Why::Late,
                false => "a page was mapped during timing".into(),
            };
            return Ok(Err(Failure::of_block(why)));
        }
        if let Some(reason) = other_pages(&self.options, &setup.pages, &setup.without_faults.pages)
        {
            return Ok(Err(Failure::of_block(reason)));
        }
        if self.options.assumptions {
            let physical = self.options.physical_pages;
            measurement.assumptions =
                assumptions::all(block, &setup, copies, &timed, physical, &self.options.core);
        }
        conclude(measurement, &timed, self.options.passes, block, self.source.clock().name());
        self.source.enter(&mut self.runner, &form, &self.options, measurement)?;
        if self.options.assumptions {
            let steady = self.steady_state(block, required_state, &setup, run, &timed)?;
            measurement.assumptions.push(steady);
        }
        measurement.values = Some(setup.values.clone());
        measurement.pages = setup.pages.iter().map(|p| format!("{p:#x}")).collect();
        let unrolled = form_result(&timed, copies, None);
        let looped = match closed {
            Some(closed) => form_result(&closed.timed, closed.copies, None),
            None => self.looped(block, required_state, &setup, rough)?,
        };
        measurement.forms = Some(Forms { unrolled, looped });
        if closed.is_some() {
            self.forget(&setup);
            return Ok(Ok(()));
        }
        self.check_alignment(block, required_state, &setup, &mut measurement.assumptions)?;
        self.explain(block, required_state, &setup, &form, run, measurement)?;
        self.forget(&setup);
        Ok(Ok(()))
    }

    /// Gives the next block a fresh worker, if it is unknown which pages this one touched.
    fn forget(&mut self, setup: &RunSetup) {
        if !setup.complete {
            self.runner.discard();
            self.runner.suspicious = true;
        }
    }
}

/// Offset that moves `[rip+x]` operands to their places within a page in the program; if those are unknown, it
/// moves the first one to the start of a cache line.
fn rip_offset(block: &Block, address: Option<u64>) -> usize {
    let first = || {
        let inst = block.instructions.iter().find(|inst| inst.rip_displacement.is_some())?;
        Some(inst.decoded.ip_rel_memory_address().wrapping_neg() % 64)
    };
    address.map_or_else(|| first().unwrap_or(0), |address| address % 4096) as usize
}
