//! `tdtool report`: measure, or read recorded counts, and show the tree.

mod args;
mod output;

pub use args::ReportArgs;

use crate::cli::Global;
use crate::commands::measure::{status, tell_blocked};
use output::Output;
use std::process::ExitCode;
use tdtool::Result;
use tdtool::analysis::{ImportAsk, Update, imported, live};
use tdtool::machine::Machine;

pub fn run(global: &Global, args: ReportArgs) -> Result<ExitCode> {
    args.check()?;
    let library = global.library()?;
    let machine = Machine::detect();
    let mut output = Output::open(&args, global)?;
    let files = args.files();
    if !files.is_empty() {
        let ask = ImportAsk {
            files,
            ask: args.measure.ask(),
            uarch: global.uarch.clone(),
            machine: Some(&machine),
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
        if failed.is_none()
            && let Err(error) = show(&mut output, &update)
        {
            // Told at once: the measurement goes on, and its summary may still find room.
            failed = Some(crate::failure::report(&error));
        }
    })?;
    tell_blocked(&outcome);
    output.last(&outcome.report)?;
    output.finish()?;
    match failed {
        Some(code) => Ok(code),
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
