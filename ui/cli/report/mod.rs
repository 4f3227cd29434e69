//! `tdtool report`: measure, or read recorded counts, and show the tree.

mod args;
mod code;
mod output;

pub use args::ReportArgs;

use crate::cli::Global;
use crate::commands::measure::{status, tell_blocked};
use engine::hot::entries::target as count_target;
use engine::hot::sampled::{of_files, of_live};
use engine::record::SampleAsk;
use engine::topdown::{ImportAsk, Update};
use output::Output;
use pmu::machine::Machine;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use tma::Result;

pub fn run(global: &Global, args: ReportArgs) -> Result<ExitCode> {
    args.check()?;
    let library = global.library()?;
    let mut output = Output::open(&args, global)?;
    let mut code = args.code.ask(global)?;
    let progress = &mut |done, all| tell_progress(done, all);
    let files = args.files();
    if !files.is_empty() {
        let ask = ImportAsk {
            files,
            ask: args.measure.ask(),
            uarch: global.uarch.clone(),
            here: Some(Machine::detect),
            intervals: args.interval.is_some(),
        };
        for report in of_files(&library, &ask, code.as_ref(), progress)? {
            if !args.stacks_only() {
                output.document(&report)?;
            }
        }
        tell_stacks(&args);
        output.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let ask = args.live(global)?;
    if let (true, Some(code)) = (args.code.counts, &mut code) {
        code.count = Some(count_target(&ask.target, ask.command.as_ref())?);
    }
    let mut failed = None;
    let sample = SampleAsk { call_chains: args.code.wants_chains(), ..SampleAsk::default() };
    let wanted = code.as_ref().map(|code| (code, &sample));
    let mut told = |update| {
        if failed.is_none()
            && let Err(error) = show(&mut output, &update)
        {
            // Told at once: the measurement goes on, and its summary may still find room.
            failed = Some(crate::failure::report(&error));
        }
    };
    let machine = Machine::detect();
    let outcome = of_live(&machine, &library, &ask, wanted, &mut told, progress)?;
    if !args.stacks_only() {
        tell_blocked(&outcome);
        output.last(&outcome.report)?;
    }
    tell_stacks(&args);
    output.finish()?;
    match failed {
        Some(code) => Ok(code),
        None => Ok(ExitCode::from(status(&outcome))),
    }
}

/// Where the folded stacks are.
#[allow(clippy::print_stderr)]
fn tell_stacks(args: &ReportArgs) {
    if let Some(path) = args.code.folded.as_ref().filter(|p| p.as_os_str() != "-" && p.exists()) {
        eprintln!("note:  the folded stacks are in {}", path.display());
    }
}

/// Blocks that are being measured, on a terminal alone.
#[allow(clippy::print_stderr)]
fn tell_progress(done: usize, all: usize) {
    if std::io::stderr().is_terminal() {
        let end = if done == all { "\r\x1b[K" } else { "" };
        eprint!("\rmeasuring block {} of {all}{end}", (done + 1).min(all));
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
