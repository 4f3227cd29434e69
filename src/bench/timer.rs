//! Times passes of a form: waits under contention, repeats while they disagree, and fills the document from the
//! timing (status, throughput, forms, failures).

use crate::counting::Source;
use crate::initial::{Failure, Why};
use crate::measurement::{
    Code, FaultLocation, FormResult, Hierarchy, Line, Measurement, Mode, Samples, Status,
    Throughput,
};
use crate::options::Options;
use crate::runner::Runner;
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{Form, Pass, PassOf};
use isa::code::Block;
use std::time::{Duration, Instant};
use tma::{Core, Result};

/// Contention often lasts less than a millisecond: the core is polled this long without a pause, then
/// with these pauses.
const BUSY_POLL: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_micros(300);

/// Factor of passes where the fastest state is rare.
const RARE_PASSES: usize = 2;

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
            let (runner, options) = (&mut self.runner, &self.options);
            let of = PassOf { form, runner, options, rounds, timed: &mut *timed };
            let pass = self.source.clock().pass(of)?;
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

/// Status and throughput, timed by `clock` in as many as `passes` passes.
pub fn conclude(
    measurement: &mut Measurement,
    timed: &FormTiming,
    passes: usize,
    block: &Block,
    clock: &'static str,
) {
    measurement.samples = Samples {
        accepted: timed.accepted,
        contended: timed.contended,
        clock_changed: timed.clock_changed,
        void: timed.void.clone(),
    };
    let (Some(cycles), Some((low, high))) = (timed.cycles(), timed.range()) else {
        let (reason, disturbed) = too_few_rounds(timed, "nearly all the time");
        measurement.distrust(Status::Unstable, reason, disturbed);
        return;
    };
    let modes = timed.modes();
    measurement.throughput = Some(Throughput {
        cycles,
        low,
        high,
        modes: modes.into_iter().map(|(cycles, share)| Mode { cycles, share }).collect(),
        clock,
    });
    measurement.ipc = (cycles > 0.0).then(|| block.instructions.len() as f64 / cycles);
    if timed.passes < passes {
        let when = format!("only {} of {passes} passes were uncontended", timed.passes);
        let (reason, disturbed) = too_few_rounds(timed, &when);
        measurement.distrust(Status::Unstable, reason, disturbed);
    } else if cycles <= 0.0 || !timed.is_reproduced() {
        let (low, high) = timed.batch_range().unwrap_or((low, high));
        let states = match timed.has_states_apart() {
            true => "long and short runs are in different states, see the loop form: ",
            false => "",
        };
        let reason = format!("{states}groups of rounds range from {low:.3} to {high:.3} cycles");
        measurement.distrust(Status::Unstable, reason, false);
    } else if timed.passes > 1 && timed.is_rare() && timed.passes < RARE_PASSES * passes {
        let when = "too few rounds in its fastest state, which is rare";
        let (reason, disturbed) = too_few_rounds(timed, when);
        measurement.distrust(Status::Unstable, reason, disturbed);
    } else {
        measurement.status = Status::Ok;
    }
}

/// The most frequent reason for rejected rounds, and whether it is contention.
fn too_few_rounds(timed: &FormTiming, when: &str) -> (String, bool) {
    match timed.void.first() {
        Some(why) if timed.contended == 0 || timed.void.len() >= timed.batches.len() => {
            (why.clone(), false)
        }
        _ if timed.clock_changed > timed.contended => {
            (format!("the clock frequency changed: {when}"), false)
        }
        _ => (format!("contention on the core: {when}"), true),
    }
}

/// The result of one form.
pub fn form_result(timed: &FormTiming, copies: usize, reason: Option<String>) -> FormResult {
    let range = timed.range();
    let reason = reason.or_else(|| {
        (!timed.is_reproduced()).then(|| match timed.batch_range() {
            None => too_few_rounds(timed, "the whole time").0,
            Some((low, high)) => {
                format!("unstable: groups of rounds range from {low:.3} to {high:.3} cycles")
            }
        })
    });
    FormResult {
        cycles: timed.cycles(),
        low: range.map(|r| r.0),
        high: range.map(|r| r.1),
        copies,
        reason,
    }
}

/// Records that a block could not be run.
pub fn fail(measurement: &mut Measurement, failure: &Failure) {
    let disturbed = failure.reason == Why::Taken;
    measurement.distrust(Status::Failed, failure.reason.to_string(), disturbed);
    measurement.interrupted = failure.reason == Why::Interrupted;
    measurement.location = Some(FaultLocation {
        copy: failure.copy,
        instruction: failure.instruction,
        address: failure.address.map(|a| format!("{a:#x}")),
    });
}

/// An empty document of a block that is at `address` in its program.
pub fn empty(block: &Block, address: Option<u64>, core: &Core) -> Measurement {
    let line = |inst| Line::of(inst, address);
    let code = Code {
        name: None,
        hex: block.hex(),
        instructions: block.instructions.iter().map(line).collect(),
    };
    measurement(code, core)
}

/// The document of input that is not a block.
pub fn rejected(input: &str, reason: String, core: &Core) -> Measurement {
    let code = Code { name: None, hex: input.to_owned(), instructions: Vec::new() };
    Measurement { status: Status::Rejected, reason: Some(reason), ..measurement(code, core) }
}

fn measurement(block: Code, core: &Core) -> Measurement {
    Measurement::blank(block, Hierarchy::not_measured("no PMU counts here", &core.level_1()))
}
