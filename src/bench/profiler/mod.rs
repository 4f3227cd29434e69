//! The block profiler: measures one block and fills its document.
//!
//! | file | concern |
//! |---|---|
//! | `setup` | initial values, pages and a way to repeat with which a block's copies run |
//! | `passes` | times passes of a form: waits under contention, repeats while they disagree |
//! | `looped` | the loop form of a block that is no loop body |

mod looped;
mod passes;
mod setup;

use super::Options;
use super::repeat::other_pages;
pub use super::results::rejected;
use super::results::{conclude, empty, fail, form_result};
use super::settings::{MeasuredOn, Settings};
use crate::checks as assumptions;
use crate::closed_loop::ClosedLoop;
use crate::counting::Source;
use crate::harness::copies;
use crate::harness::required_state::RequiredState;
use crate::initial::failure::Failure;
use crate::initial::run_setup::RunSetup;
use crate::measurement::{FaultLocation, Forms, Measurement, Status};
use crate::plausibility::ends;
use crate::runner::{MXCSR_GRADUAL, Runner};
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Repeat};
use isa::code::Block;
use std::time::{Duration, Instant};
use tma::Result;

/// The reason where no sentinel fills every slot yet.
const UNTESTED: &str = "the core was shared during its self-test, so that contention does not show";

/// How many copies, how they repeat, and roughly how many cycles an iteration takes.
type Look = (usize, Repeat, f64);

/// Most repetitions of the copies: longer runs are disturbed more often and agree less.
const REPEAT: u32 = 64;
/// Cycles that a long run of few or fast copies takes nevertheless, and its most repetitions.
const SHORTEST: f64 = 3000.0;
const MOST_REPEAT: f64 = 400.0;

/// Measures blocks, one after the other, in one sandbox. Belongs to its thread.
///
/// ```
/// use bench::{Options, Profiler, Status};
/// use isa::code::{Block, parse_hex};
///
/// // imul rax, rax
/// let block = Block::decode(&parse_hex("48 0f af c0")?)?;
/// let measurement = Profiler::new(Options::quick()).measure(&block)?;
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
/// assert_eq!(Profiler::new(Options::quick()).measure(&syscall)?.status, Status::Rejected);
/// # Ok::<(), tma::Error>(())
/// ```
pub struct Profiler {
    pub(super) runner: Runner,
    pub(super) options: Options,
    /// Clock and counters.
    pub(super) source: Source,
    suspicious: bool,
    /// When the current block's budget ends.
    deadline: Instant,
}

impl Profiler {
    /// A profiler; the sandbox starts with the first block.
    pub fn new(options: Options) -> Self {
        let runner =
            Runner::new(options.core.clone(), Source::cpu(&options), Source::inspect(&options));
        let source = Source::new(&options);
        Self { runner, options, source, suspicious: false, deadline: Instant::now() }
    }

    /// The core that is measured on.
    pub fn core(&self) -> &tma::Core {
        &self.options.core
    }

    /// The address of the worker's region, which is hidden from blocks.
    #[cfg(test)]
    pub(super) fn region(&mut self) -> u64 {
        self.runner.worker().expect("a sandbox").base()
    }

    /// Reports to `progress` from now on, which can also cancel the next block.
    pub fn set_progress(&mut self, progress: super::Progress) {
        self.options.progress = progress;
    }

    /// Limits how long each block may wait for an uncontended core.
    pub fn set_budget(&mut self, budget: Duration) {
        self.options.budget = budget;
    }

    /// Fixes the initial values of the next blocks.
    pub fn set_values(&mut self, values: super::Values) {
        self.options.values = Some(values);
    }

    /// Current core cycles per tick of the time-stamp counter; `None` under contention.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn cycles_per_tick(&mut self) -> Result<Option<f64>> {
        self.runner.cycles_per_tick()
    }

    fn settings(&self) -> Settings {
        Settings::of(&self.options, self.source.clock_name(), self.runner.cpu())
    }

    /// Pins the calling thread to the processor of the worker, which shortens commands to the sandbox.
    pub fn pin_to_worker_cpu(&mut self) {
        self.runner.pin_to_worker_cpu();
    }

    /// Measures one block.
    ///
    /// # Errors
    /// The sandbox cannot be started. Failures of the block are in the document.
    pub fn measure(&mut self, block: &Block) -> Result<Measurement> {
        let mut measurement = empty(block, &self.options.core);
        measurement.machine = Some(MeasuredOn::on(&self.options.core));
        measurement.settings = Some(self.settings());
        if let Some(refusal) = block.refusal() {
            measurement.status = Status::Rejected;
            measurement.reason = Some(refusal.reason);
            let instruction = Some(refusal.instruction);
            measurement.location = Some(FaultLocation { instruction, ..FaultLocation::default() });
            return Ok(measurement);
        }
        if self.suspicious {
            self.runner.canary()?;
            self.suspicious = false;
        }
        self.deadline = Instant::now() + self.options.budget;
        if self.options.gradual_underflow {
            self.runner.mxcsr = MXCSR_GRADUAL;
        }
        let sees_neighbours =
            !self.options.sentinel || self.runner.select_sentinel(self.options.budget)?;
        self.source.select_clock(&mut self.runner, &self.options)?;
        let layers = self.runner.layers()?;
        measurement.sandbox = layers
            .without_namespaces
            .map(|why| format!("no namespaces of its own: {why}"))
            .into_iter()
            .chain((layers.left_mapped > 0).then(|| "sealed system pages stay mapped".to_owned()))
            .collect();
        let before = self.runner.timeouts;
        let mut outcome = self.measure_runnable(block, &mut measurement)?;
        if outcome.is_err() && self.runner.timeouts > before {
            // The worker may have been descheduled rather than busy.
            outcome = self.measure_runnable(block, &mut measurement)?;
        }
        measurement.settings = Some(self.settings());
        if let Err(failure) = outcome {
            // Discard the worker with whatever state the block left.
            self.runner.discard();
            self.suspicious = true;
            fail(&mut measurement, &failure);
        }
        if !sees_neighbours && measurement.status == Status::Ok {
            measurement.status = Status::Unstable;
            measurement.reason = Some(UNTESTED.to_owned());
        }
        Ok(measurement)
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
        let closed = match self.closed_loop(block, &required_state)? {
            Some(Ok(closed)) => Some(closed),
            Some(Err(why)) if whole => return Ok(Err(Failure::of_block(why))),
            None if whole => {
                let why = "its first block ends in a call or jump elsewhere";
                return Ok(Err(Failure::of_block(why)));
            }
            Some(Err(why)) => {
                measurement.notes.push(format!("not measured as a loop: {why}"));
                None
            }
            None => None,
        };
        let copies = match whole {
            true => Err(Failure::of_block("a loop of several blocks has none")),
            false => self.measure_copies(block, &required_state, closed.as_ref(), measurement)?,
        };
        let Some(closed) = closed else { return Ok(copies) };
        if let Err(failure) = copies {
            // The loop is the answer; its straight copies fail for reasons of their own.
            self.runner.discard();
            self.suspicious = true;
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
        let shape = (copies, how, repeat);
        let offsets = copies::offsets(&self.options);
        let mut form = measure::unrolled(block, required_state, &setup, shape, &offsets);
        if !self.options.two_factors {
            form.forget_short(repeat as usize * copies);
        }
        let mut timed = FormTiming::default();
        let from_end_to_end = (ends(shape), self.options.passes);
        if let Some(failure) = self.timed_plausibly(block, &form, from_end_to_end, &mut timed)? {
            return Ok(Err(failure));
        }
        if self.runner.pages().as_ref() != Some(&setup.pages) {
            return Ok(Err(Failure::of_block("a page was mapped during timing")));
        }
        if let Some(reason) = other_pages(&self.options, &setup.pages) {
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
            let steady = self.steady_state(block, required_state, &setup, shape, &timed)?;
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
        self.explain(block, required_state, &setup, (&form, shape), measurement)?;
        self.forget(&setup);
        Ok(Ok(()))
    }

    /// After a block of which it is not known what it touched, the next one gets a fresh worker.
    fn forget(&mut self, setup: &RunSetup) {
        if !setup.complete {
            self.runner.discard();
            self.suspicious = true;
        }
    }
}

/// By how much to move `[rip+x]` operands so that they are where they are in the program, within a page;
/// where that is not known, so that the first starts a cache line.
fn rip_offset(block: &Block, address: Option<u64>) -> usize {
    let first = || {
        let inst = block.instructions.iter().find(|inst| inst.rip_displacement.is_some())?;
        Some(inst.decoded.ip_rel_memory_address().wrapping_neg() % 64)
    };
    address.map_or_else(|| first().unwrap_or(0), |address| address % 4096) as usize
}
