//! From the timing to the verdict, and the report around it.

use super::discover::Failure;
use super::document::{
    Code, FormResult, Hierarchy, Line, Mode, Report, Samples, Status, Throughput, Where,
};
use super::processor::Processor;
use super::timed::Timed;
use crate::code::Block;

/// Status and throughput, timed by `clock` in as many as `passes` passes.
pub fn conclude(
    report: &mut Report,
    timed: &Timed,
    passes: usize,
    block: &Block,
    clock: &'static str,
) {
    report.samples = Samples {
        kept: timed.kept,
        contended: timed.contended,
        clock_changed: timed.changed,
        void: timed.void.clone(),
    };
    let (Some(cycles), Some((low, high))) = (timed.cycles(), timed.range()) else {
        report.status = Status::Unstable;
        report.reason = Some(if timed.void.is_empty() {
            "something else used the core nearly all the time".to_owned()
        } else {
            timed.void[0].clone()
        });
        return;
    };
    let modes = timed.modes();
    report.throughput = Some(Throughput {
        cycles,
        low,
        high,
        modes: modes.into_iter().map(|(cycles, share)| Mode { cycles, share }).collect(),
        clock,
    });
    report.ipc = (cycles > 0.0).then(|| block.instructions.len() as f64 / cycles);
    if timed.passes < passes {
        report.status = Status::Unstable;
        report.reason = Some(format!(
            "something else used the core: {} of {passes} passes were calm",
            timed.passes
        ));
    } else if cycles <= 0.0 || !timed.is_reproduced() {
        report.status = Status::Unstable;
        report.reason = Some(format!("batches lie between {low:.3} and {high:.3} cycles"));
    } else {
        report.status = Status::Ok;
    }
}

/// What is said about one form.
pub fn form_result(timed: &Timed, copies: usize, reason: Option<String>) -> FormResult {
    let range = timed.range();
    let reason = reason.or_else(|| {
        timed.cycles().is_none().then(|| "the core was shared the whole time".to_owned())
    });
    FormResult {
        cycles: timed.cycles(),
        low: range.map(|r| r.0),
        high: range.map(|r| r.1),
        copies,
        reason,
    }
}

/// A block that could not be run.
pub fn fail(report: &mut Report, failure: &Failure) {
    report.status = Status::Failed;
    report.reason = Some(failure.reason.clone());
    report.place = Some(Where {
        copy: failure.copy,
        instruction: failure.instruction,
        address: failure.address.map(|a| format!("{a:#x}")),
    });
}

/// A report that says nothing yet.
pub fn empty(block: &Block) -> Report {
    let line = |inst: &crate::code::Inst| Line {
        offset: format!("{:#x}", inst.offset),
        bytes: inst.bytes.iter().map(|b| format!("{b:02x}")).collect(),
        text: inst.text.clone(),
    };
    let code = Code {
        name: None,
        hex: block.hex(),
        instructions: block.instructions.iter().map(line).collect(),
    };
    report(code)
}

/// The report of something that is no block at all.
pub fn rejected(input: &str, reason: String) -> Report {
    let code = Code { name: None, hex: input.to_owned(), instructions: Vec::new() };
    Report { status: Status::Rejected, reason: Some(reason), ..report(code) }
}

fn report(block: Code) -> Report {
    Report::blank(block, Hierarchy::not_measured("no PMU counts here", &Processor::here().level_1))
}
