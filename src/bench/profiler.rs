//! From a block to its report.

use super::Options;
use super::repeat::other_pages;
use super::results::RARE_PASSES;
pub use super::results::rejected;
use super::results::{conclude, empty, fail, form_result};
use super::settings::{MeasuredOn, Settings};
use crate::checks as assumptions;
use crate::counting::Source;
use crate::harness::copies;
use crate::harness::loop_counter::Counter;
use crate::harness::required_state::Needs;
use crate::initial::discover::{discover_staged, replay};
use crate::initial::failure::Failure;
use crate::initial::run_setup::Found;
use crate::measurement::{FaultLocation, FormResult, Forms, Measurement, Status, TAKEN};
use crate::plausibility::{ends, implausible};
use crate::runner::{MXCSR_GRADUAL, Runner};
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{self, Form, Pass, Repeat};
use isa::code::Block;
use std::time::{Duration, Instant};
use tma::Result;

/// Neighbours come and go within a millisecond: so long the core is watched without a pause, and
/// after that with these.
const BRIEF: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_micros(300);

/// How many copies, how they repeat, and roughly how many cycles an iteration takes.
type Look = (usize, Repeat, f64);

/// Passes over the loop form.
const LOOP_PASSES: usize = 2;

/// Most repetitions of the copies. Longer runs are disturbed more often, and agreed less.
const REPEAT: u32 = 64;

/// Measures blocks, one after the other, in a sandbox that it keeps. Belongs to its thread.
pub struct Profiler {
    pub(super) runner: Runner,
    pub(super) options: Options,
    /// Clock and counters.
    source: Source,
    suspicious: bool,
    /// When the block at hand has had its time.
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

    /// Where the worker's region lies, which no block is told.
    #[cfg(test)]
    pub(super) fn region(&mut self) -> u64 {
        self.runner.worker().expect("a sandbox").base()
    }

    /// Whoever holds `watch` may look on from now, and call the next block off.
    pub fn set_progress(&mut self, watch: super::Progress) {
        self.options.progress = watch;
    }

    /// How long a block may wait from now on for a core that nothing else uses.
    pub fn set_budget(&mut self, budget: Duration) {
        self.options.budget = budget;
    }

    /// The next blocks start with these values and no others.
    pub fn set_values(&mut self, values: super::Values) {
        self.options.values = Some(values);
    }

    /// Core cycles per tick of the time stamp counter just now, where they can be told.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn cycles_per_tick(&mut self) -> Result<Option<f64>> {
        self.runner.cycles_per_tick()
    }

    fn settings(&self) -> Settings {
        Settings::of(&self.options, self.source.clock_name(), self.runner.cpu())
    }

    /// Keeps the calling thread, which measures and does nothing else from now on, on the
    /// processor that it measures on: commands to the sandbox take less time then.
    pub fn pin_to_worker_cpu(&mut self) {
        self.runner.pin_to_worker_cpu();
    }

    /// Measures one block.
    ///
    /// # Errors
    /// The sandbox cannot be started. Whatever is wrong with the block is in the report.
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
        self.runner.select_sentinel()?;
        self.source.settle(&mut self.runner, &self.options)?;
        let layers = self.runner.layers()?;
        measurement.sandbox = layers
            .without_namespaces
            .map(|why| format!("no namespaces of its own: {why}"))
            .into_iter()
            .chain((layers.left_mapped > 0).then(|| "sealed system pages stay mapped".to_owned()))
            .collect();
        let before = self.runner.timeouts;
        let mut outcome = self.attempt(block, &mut measurement)?;
        if outcome.is_err() && self.runner.timeouts > before {
            // Perhaps the worker was kept from running rather than busy.
            outcome = self.attempt(block, &mut measurement)?;
        }
        measurement.settings = Some(self.settings());
        if let Err(failure) = outcome {
            // Whatever it may have left behind goes with its worker.
            self.runner.discard();
            self.suspicious = true;
            fail(&mut measurement, &failure);
        }
        Ok(measurement)
    }

    fn attempt(
        &mut self,
        block: &Block,
        measurement: &mut Measurement,
    ) -> Result<std::result::Result<(), Failure>> {
        let needs = Needs::of(block);
        let (found, (copies, how, rough)) = match self.lay_out(block, &needs)? {
            Ok(laid_out) => laid_out,
            Err(failure) => return Ok(Err(failure)),
        };
        let wanted = self.options.min_instructions.div_ceil(copies * block.instructions.len());
        let repeat = (self.options.cycles / (rough * copies as f64)).ceil().max(wanted as f64);
        let repeat = repeat.clamp(1.0, f64::from(REPEAT)) as u32;
        let shape = (copies, how, repeat);
        let offsets = copies::offsets(&self.options);
        let mut form = measure::unrolled(block, &needs, &found, shape, &offsets);
        if !self.options.two_factors {
            form.forget_short(repeat as usize * copies);
        }
        let mut timed = FormTiming::default();
        let from_end_to_end = (ends(shape), self.options.passes);
        if let Some(failure) = self.timed_plausibly(block, &form, from_end_to_end, &mut timed)? {
            return Ok(Err(failure));
        }
        if self.runner.pages().as_ref() != Some(&found.pages) {
            return Ok(Err(Failure::of_all("a page was mapped while it was timed")));
        }
        if let Some(reason) = other_pages(&self.options, &found.pages) {
            return Ok(Err(Failure::of_all(reason)));
        }
        if self.options.assumptions {
            let physical = self.options.physical_pages;
            measurement.assumptions =
                assumptions::all(block, &found, copies, &timed, physical, &self.options.core);
        }
        conclude(measurement, &timed, self.options.passes, block, self.source.clock().name());
        self.source.enter(&mut self.runner, &form, &self.options, measurement)?;
        if self.options.assumptions {
            let steady = self.steady_state(block, &needs, &found, shape, &timed)?;
            measurement.assumptions.push(steady);
        }
        measurement.values = Some(found.values.clone());
        measurement.pages = found.pages.iter().map(|p| format!("{p:#x}")).collect();
        let unrolled = form_result(&timed, copies, None);
        let looped = self.looped(block, &needs, &found, rough)?;
        measurement.forms = Some(Forms { unrolled, looped });
        self.check_alignment(block, &needs, &found, &mut measurement.assumptions)?;
        self.explain(block, &needs, &found, (&form, shape), measurement)?;
        if !found.complete {
            // Who knows what it touched: the next block gets a fresh worker.
            self.runner.discard();
            self.suspicious = true;
        }
        Ok(Ok(()))
    }

    /// The kernel's count of involuntary switches of the worker, if anybody wants to know.
    fn switches(&mut self) -> Result<Option<u64>> {
        let worker = self.runner.worker()?;
        Ok(if self.options.assumptions { worker.switches() } else { None })
    }

    /// Finds how the block can be run, and roughly how long an iteration takes. Few copies are
    /// traced first: most blocks keep to their addresses and need no more.
    fn lay_out(
        &mut self,
        block: &Block,
        needs: &Needs,
    ) -> Result<std::result::Result<(Found, Look), Failure>> {
        let all = copies::copies(block, &self.options);
        let few = copies::few(block, &self.options).filter(|_| !copies::moves(block));
        let mut with_few = None;
        for copies in few.into_iter().chain([all]) {
            let last = copies == all;
            let (stage, before) = ((copies, last), with_few.as_ref());
            let runner = &mut self.runner;
            let found = match discover_staged(runner, block, needs, stage, before, &self.options)? {
                Ok(found) if last || (found.is_stationary() && found.copies == copies) => found,
                Err(failure) if last => return Ok(Err(failure)),
                Ok(found) => {
                    with_few = Some(found);
                    continue;
                }
                Err(_) => continue,
            };
            let look = match self.again(block, needs, &found)? {
                Ok(()) => self.first_look(block, needs, &found, last)?,
                Err(failure) => Err(failure),
            };
            match look {
                Ok(look) => return Ok(Ok((found, look))),
                Err(failure) if last => return Ok(Err(failure)),
                Err(_) => {}
            }
        }
        Ok(Err(Failure::nothing()))
    }

    /// Has the copies run as they are measured, on the pages and lines of the trace.
    fn again(
        &mut self,
        block: &Block,
        needs: &Needs,
        found: &Found,
    ) -> Result<std::result::Result<(), Failure>> {
        self.runner.lines(&found.lines)?;
        replay(&mut self.runner, block, needs, found, &self.options)
    }

    /// The first way to run the unrolled form that works; straight code only if `straight`.
    fn first_look(
        &mut self,
        block: &Block,
        needs: &Needs,
        found: &Found,
        straight: bool,
    ) -> Result<std::result::Result<Look, Failure>> {
        let mut last = None;
        for (copies, how) in copies::ways(block, found, &self.options) {
            if matches!(how, Repeat::Restored) && !straight {
                break;
            }
            let look = measure::unrolled(block, needs, found, (copies, how, 1), &[0]);
            // Without a pause as long as it may be repeated when it is timed.
            let longest = matches!(how, Repeat::Counted(_)).then_some(REPEAT);
            let rough = look.rough(&mut self.runner, &self.options, longest)?;
            if self.runner.pages().as_ref() == Some(&found.pages) {
                match rough {
                    Ok(cycles) => return Ok(Ok((copies, how, cycles))),
                    Err(failure) => last = Some(failure),
                }
                continue;
            }
            // It went further than the trace: back to the pages of that.
            let (physical, pages) = (self.options.physical_pages, self.options.pages_allowed());
            self.runner.prepare(&found.values, physical, pages)?;
            if let Err(failure) = self.again(block, needs, found)? {
                return Ok(Err(failure));
            }
            let other = || Failure::of_all("it touches other pages in a loop");
            last = Some(rough.err().unwrap_or_else(other));
        }
        Ok(Err(last.unwrap_or_else(Failure::nothing)))
    }

    /// Passes of a form, waiting while the core is shared and repeated while they disagree.
    pub(super) fn timed(
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
        self.source.watch(&mut self.runner, &self.options)?;
        let failure = self.passes(form, passes, rounds, timed)?;
        self.source.unwatch(&mut self.runner)?;
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
            // The loop form and comparisons, which have fewer passes, need not be known as well.
            let headline = passes > 1 && passes >= self.options.passes;
            let more = timed.is_rare() || (headline && timed.is_vague());
            let enough = timed.passes >= passes * if more { RARE_PASSES } else { 1 };
            if enough && timed.is_reproduced() {
                break;
            }
            if self.options.progress.is_cancelled() {
                return Ok(Some(Failure::of_all("cancelled")));
            }
            self.options.progress.count_pass();
            // Not while it waits for a calm core: what is switched then are no samples.
            let switches = self.switches()?;
            let clock = self.source.clock();
            let pass = clock.pass(form, &mut self.runner, &self.options, rounds, timed)?;
            if let (Some(then), Some(now)) = (switches, self.switches()?) {
                timed.switches = Some(timed.switches.unwrap_or(0) + now.saturating_sub(then));
            }
            match pass {
                Pass::Done => tried += 1,
                Pass::Failed(failure) => return Ok(Some(failure)),
                Pass::Contended if self.wait_for_idle_core()? => {}
                Pass::Contended if self.runner.timeouts > before => {
                    return Ok(Some(Failure::of_all(TAKEN)));
                }
                Pass::Contended => break,
            }
        }
        Ok(None)
    }

    /// Waits until nothing else uses the core, changing to another one where that may be done.
    /// `false`: the block's time is over.
    fn wait_for_idle_core(&mut self) -> Result<bool> {
        let start = Instant::now();
        let mut polls = 0;
        let before = self.runner.timeouts;
        while Instant::now() < self.deadline && self.runner.timeouts == before {
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
            if start.elapsed() > BRIEF {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(false)
    }

    /// The loop form, or why there is none.
    fn looped(
        &mut self,
        block: &Block,
        needs: &Needs,
        found: &Found,
        rough: f64,
    ) -> Result<FormResult> {
        let not = |reason: &str| form_result(&FormTiming::default(), 0, Some(reason.to_owned()));
        if !self.options.loop_form {
            return Ok(not("not asked for"));
        }
        let counter = match Counter::of(block) {
            Ok(counter) => counter,
            Err(reason) => return Ok(not(reason)),
        };
        // Few copies where memory is written: store forwarding depends on how many there are.
        let copies = if block.instructions.iter().any(isa::code::Inst::writes_memory) {
            1
        } else {
            48usize.div_ceil(block.instructions.len())
        };
        let long =
            (self.options.cycles / (rough.max(0.05) * copies as f64)).clamp(8.0, 400.0) as u32;
        // Where addresses move, no further than the trace: beyond it they may leave the L1 cache.
        let traced = (found.copies / copies).max(2) as u32;
        let long = if found.is_stationary() { long } else { long.min(traced) };
        let form = measure::looped(block, needs, found, copies, counter, long & !1);
        let iterations = copies * long as usize;
        let mut timed = FormTiming::default();
        // The loop runs further than the copies did; its pages are found and its lines recorded
        // by a run of its own.
        form.install(&mut self.runner)?;
        let failure = form.rehearse(&mut self.runner, &self.options)?;
        if failure.is_none() && !found.lines.is_empty() {
            let pages = self.runner.pages().unwrap_or_default();
            let physical = self.options.physical_pages;
            let lines = self.runner.changed_lines(&pages, found.values.memory, physical);
            self.runner.lines(if lines.is_empty() { &found.lines } else { &lines })?;
        }
        let failure = match failure {
            None => self.timed_plausibly(block, &form, (iterations, LOOP_PASSES), &mut timed)?,
            failure => failure,
        };
        Ok(match failure {
            Some(failure) => not(&format!("it fails as a loop: {}", failure.reason)),
            None => form_result(
                &timed,
                copies,
                implausible(block, &self.options.core, &timed, iterations),
            ),
        })
    }
}
