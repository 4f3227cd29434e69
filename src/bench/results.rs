//! Fills the document from the timing: status, throughput, forms, failures.

use crate::initial::{Failure, Why};
use crate::measurement::{
    Code, FaultLocation, FormResult, Hierarchy, Line, Measurement, Mode, Samples, Status,
    Throughput,
};
use crate::timing::form_timing::FormTiming;
use isa::code::Block;
use tma::Core;

/// Factor of passes where the fastest state is rare.
pub(super) const RARE_PASSES: usize = 2;

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
        let states = match timed.is_contradicted() {
            true => "its copies are in several states, so that the loop form alone may be right: ",
            false => "",
        };
        let reason = format!("{states}batches range from {low:.3} to {high:.3} cycles");
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
                format!("unstable: batches range from {low:.3} to {high:.3} cycles")
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
