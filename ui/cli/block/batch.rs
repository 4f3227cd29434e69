//! `tdtool block --batch`: rows in, rows out.

use super::args::BlockArgs;
use super::input;
use super::output::Output;
use super::progress::Progress;
use crate::failure;
use bench::batch::{self, Step, rows};
use bench::{Options, processors};
use engine::render::block::row;
use pmu::perf::Signals;
use std::path::Path;
use std::process::ExitCode;
use tma::{Error, Result};

/// Measures all rows of `path`. An interrupt ends it behind the rows that are written.
pub fn run(
    path: &Path,
    output: &Path,
    args: &BlockArgs,
    options: &Options,
    ascii: bool,
) -> Result<ExitCode> {
    if std::fs::canonicalize(path)
        .is_ok_and(|p| std::fs::canonicalize(output).is_ok_and(|o| p == o))
    {
        return Err(Error::usage(format!("{} would overwrite its own input", output.display()))
            .hint("give -o another file"));
    }
    let rows = rows::read(&input::file(path)?)?.rows;
    let jobs = jobs(args.jobs, options.cpu)?;
    let (mut file, done) = Output::open(output, args.resume, &rows)?;
    let mut progress = Progress::new(rows.len(), done, ascii);
    let mut signals = Some(Signals::catch()?);
    let mut interrupted = None;
    let outcome = batch::run(&rows[done..], options, &jobs, |step| {
        if let Step::Row(report) = step {
            file.line(&row(&report))?;
            progress.count(report.status);
        }
        progress.show();
        interrupted = signals.as_ref().and_then(Signals::next).map(|(number, _)| number);
        if interrupted.is_some() {
            // A second interrupt does not wait for the blocks at work.
            signals = None;
        }
        Ok(interrupted.is_none())
    });
    drop(signals);
    progress.end();
    outcome?;
    let Some(signal) = interrupted else { return Ok(ExitCode::SUCCESS) };
    let what = format!("interrupted: {} of {} rows are written", progress.rows(), rows.len());
    failure::tell("note", &what, None, Some("the same command with --resume goes on from there"));
    Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)))
}

/// The processor of each job; a job by itself stays where the scheduler likes.
fn jobs(wanted: Option<u16>, cpu: Option<usize>) -> Result<Vec<Option<usize>>> {
    match (wanted.map(usize::from), cpu) {
        (Some(2..), Some(_)) => Err(Error::usage("--cpu is for one job")
            .because("jobs at the same time need a physical core each")
            .hint("leave out --cpu, or --jobs")),
        (_, Some(cpu)) => Ok(vec![Some(cpu)]),
        (Some(1), None) => Ok(vec![None]),
        (wanted, None) => {
            let mut cores = processors::one_a_core();
            if let Some(wanted) = wanted.filter(|n| *n > cores.len()) {
                let have = cores.len();
                let what = format!("{have} jobs instead of {wanted}");
                let cause = format!(
                    "this process may use {have} physical cores; two blocks on one would disturb each other"
                );
                failure::tell("note", &what, Some(&cause), None);
            }
            cores.truncate(wanted.unwrap_or(usize::MAX));
            Ok(match cores.len() {
                1 => vec![None],
                _ => cores.into_iter().map(Some).collect(),
            })
        }
    }
}
