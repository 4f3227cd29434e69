//! From the timing to the verdict, and the report around it.

use crate::initial::failure::Failure;
use crate::report::{
    Code, FormResult, Hierarchy, Line, Mode, Report, SHARED, Samples, Status, Throughput, Where,
};
use crate::timing::timed::Timed;
use isa::code::Block;
use tma::Core;

/// So many times as many passes are made where the fastest state is rare.
pub(super) const RARE_PASSES: usize = 2;

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
        report.reason = Some(disturbed(timed, "nearly all the time"));
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
        let when = format!("{} of {passes} passes were calm", timed.passes);
        report.reason = Some(disturbed(timed, &when));
    } else if cycles <= 0.0 || !timed.is_reproduced() {
        report.status = Status::Unstable;
        let (low, high) = timed.batch_range().unwrap_or((low, high));
        report.reason = Some(format!("batches lie between {low:.3} and {high:.3} cycles"));
    } else if timed.passes > 1 && timed.is_rare() && timed.passes < RARE_PASSES * passes {
        report.status = Status::Unstable;
        let when = "before its fastest state, which is rare, was met more often";
        report.reason = Some(disturbed(timed, when));
    } else {
        report.status = Status::Ok;
    }
}

/// What kept rounds from counting, most of all.
fn disturbed(timed: &Timed, when: &str) -> String {
    match timed.void.first() {
        Some(why) if timed.contended == 0 || timed.void.len() >= timed.batches.len() => why.clone(),
        _ if timed.changed > timed.contended => format!("the clock changed: {when}"),
        _ => format!("{SHARED}: {when}"),
    }
}

/// What is said about one form.
pub fn form_result(timed: &Timed, copies: usize, reason: Option<String>) -> FormResult {
    let range = timed.range();
    let reason = reason.or_else(|| {
        (!timed.is_reproduced()).then(|| match timed.batch_range() {
            None => disturbed(timed, "the whole time"),
            Some((low, high)) => {
                format!("unstable: batches lie between {low:.3} and {high:.3} cycles")
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
pub fn empty(block: &Block, core: &Core) -> Report {
    let line = |inst: &isa::code::Inst| Line {
        offset: format!("{:#x}", inst.offset),
        bytes: inst.bytes.iter().map(|b| format!("{b:02x}")).collect(),
        text: inst.text.clone(),
    };
    let code = Code {
        name: None,
        hex: block.hex(),
        instructions: block.instructions.iter().map(line).collect(),
    };
    report(code, core)
}

/// The report of something that is no block at all.
pub fn rejected(input: &str, reason: String, core: &Core) -> Report {
    let code = Code { name: None, hex: input.to_owned(), instructions: Vec::new() };
    Report { status: Status::Rejected, reason: Some(reason), ..report(code, core) }
}

fn report(block: Code, core: &Core) -> Report {
    Report::blank(block, Hierarchy::not_measured("no PMU counts here", &core.level_1()))
}
