//! `tdtool report`: measure, or read recorded counts, and show the tree.

mod args;
mod output;

pub use args::ReportArgs;

use crate::cli::Global;
use output::Output;
use std::process::ExitCode;
use tdtool::analysis::{ImportAsk, Outcome, Update, imported, live};
use tdtool::machine::{Machine, choose};
use tdtool::{Error, Result};

/// Exit status after Ctrl-C: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

pub fn run(global: &Global, args: ReportArgs) -> Result<ExitCode> {
    args.check()?;
    let library = global.library()?;
    let machine = Machine::detect();
    let mut output = Output::open(&args, global)?;
    let files = args.files();
    if !files.is_empty() {
        let detected = choose(&machine, &library, None).unwrap_or_default();
        let ask = ImportAsk {
            files,
            ask: args.ask(),
            uarch: global.uarch.clone(),
            detected: detected.into_iter().map(|t| t.table).collect(),
            intervals: args.interval.is_some(),
        };
        for report in imported(&library, &ask)? {
            output.document(&report)?;
        }
        output.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let ask = args.live(global)?;
    let mut failed = None;
    let outcome = live(&machine, &library, &ask, &mut |update| {
        if failed.is_none() {
            failed = show(&mut output, &update).err();
        }
    })?;
    blocked(&outcome);
    output.last(&outcome.report)?;
    output.finish()?;
    match failed {
        Some(error) => Err(error),
        None => Ok(ExitCode::from(status(&outcome))),
    }
}

#[allow(clippy::print_stderr)]
fn show(output: &mut Output, update: &Update) -> Result<()> {
    match update {
        Update::Runs(runs) => eprintln!("note: the command will run up to {runs} times"),
        Update::Interval(report) => output.document(report)?,
        Update::Interrupted(_) => eprintln!("note: interrupted; reporting what was measured"),
    }
    Ok(())
}

/// Why there is no tree and what to do, once, on standard error.
#[allow(clippy::print_stderr)]
fn blocked(outcome: &Outcome) {
    let Some(finding) = &outcome.blocked else { return };
    eprintln!("note:  {}", finding.what);
    if let Some(cause) = &finding.cause {
        eprintln!("cause: {cause}");
    }
    if let Some(remedy) = &finding.remedy {
        eprintln!("try:   {remedy}");
    }
}

/// The command's own status; 130 where a signal ended the measurement.
fn status(outcome: &Outcome) -> u8 {
    if outcome.interrupted.is_some() {
        return INTERRUPTED;
    }
    let code = outcome.exit.map_or(0, |e| e.code());
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// A usage error with its remedy.
fn usage(what: &str, hint: &str) -> Error {
    Error::usage(what).hint(hint)
}
