//! `tdtool block --batch`: rows in, rows out.

use super::arguments::BlockArgs;
use super::bar::Progress;
use super::rows_file::{Existing, RowsFile};
use crate::cli::code::read;
use crate::message;
use bench::batch::{self, Step, rows};
use bench::{Options, processors};
use pmu::perf::Signals;
use report::render::block::row;
use std::path::Path;
use std::process::ExitCode;
use tma::{Error, Result};

/// Measures all rows of `path`. An interrupt ends it after the last row that is complete.
pub fn run(
    path: &Path,
    output: &Path,
    args: &BlockArgs,
    options: &Options,
    ascii: bool,
) -> Result<ExitCode> {
    let rows = rows::read(&read::rows(path, output)?)?.rows;
    let jobs = jobs(args.jobs, options)?;
    let (mut file, done) =
        RowsFile::open(output, path, Existing::asked(args.resume, args.force), &rows)?;
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
            // A second interrupt ends this process without waiting for the running blocks.
            signals = None;
        }
        Ok(interrupted.is_none())
    });
    drop(signals);
    progress.end();
    let fewer = outcome?;
    if fewer >= 0.005 {
        let what = format!("fewer than {} jobs for {:.0} % of the time", jobs.len(), 100.0 * fewer);
        let cause = "more were slower: processors may be threads of one core for a while, although the topology of \
                     this machine shows none";
        message::print("note", &what, Some(cause), None);
    }
    let Some(signal) = interrupted else { return Ok(ExitCode::SUCCESS) };
    let what = format!("interrupted: {} of {} rows written", progress.rows(), rows.len());
    message::print("note", &what, None, Some("rerun with --resume to continue"));
    Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)))
}

/// The CPU of each job; a single job runs where the scheduler puts it.
fn jobs(wanted: Option<u16>, options: &Options) -> Result<Vec<Option<usize>>> {
    match (wanted.map(usize::from), options.cpu) {
        (Some(2..), Some(_)) => Err(Error::usage("--cpu allows only one job")
            .because("parallel jobs need one physical core each")
            .hint("leave out --cpu or --jobs")),
        (_, Some(cpu)) => Ok(vec![Some(cpu)]),
        (Some(1), None) => Ok(vec![None]),
        (wanted, None) => {
            let mut cores = processors::one_a_core();
            if let Some(wanted) = wanted.filter(|n| *n > cores.len()) {
                let have = cores.len();
                let what = format!("{have} jobs instead of {wanted}");
                let cause = format!(
                    "this process may use {have} physical cores; two blocks on a core would contend for it"
                );
                message::print("note", &what, Some(&cause), None);
            }
            cores.truncate(wanted.unwrap_or(usize::MAX));
            Ok(match cores.len() {
                1 => vec![None],
                _ => cores.into_iter().map(Some).collect(),
            })
        }
    }
}
