//! `tdtool block --batch`: rows in, rows out, only complete ones, whatever happens; with `--against` the predictions of a
//! cost model beside them.

use super::arguments::{BlockArgs, Format};
use super::progress::BatchProgress;
use crate::cli::files::{self, page, print, read_file};
use crate::cli::measure::exit_code;
use crate::message;
use bench::batch::rows::{self, Row};
use bench::batch::{self, Step};
use bench::{Options, processors};
use engine::judge::judge;
use nix::sys::resource::{Resource, getrlimit};
use pmu::perf::Signals;
use report::files::{check_output, is_stdout};
use report::render::block::{HEADER, row};
use report::render::{block, json};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tma::{Error, Result};

/// Measures the rows of `input`, then judges the predictions, if there are any.
pub fn measure_and_judge(
    input: &Path,
    output: &Path,
    args: &BlockArgs,
    options: &Options,
    ascii: bool,
) -> Result<ExitCode> {
    let Some(predictions) = &args.against else {
        return match args.format {
            Format::Text => measure_rows(input, output, args, options, ascii),
            _ => Err(Error::usage("--format does not apply to the rows of --batch")
                .hint("the results are CSV; with --against, --format is that of the evaluation")),
        };
    };
    // Before the batch, which may take long.
    let predictions = read_file(Path::new(predictions))?;
    let predictions = String::from_utf8_lossy(&predictions);
    let code = measure_rows(input, output, args, options, ascii)?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let results =
        std::fs::read_to_string(output).map_err(|e| tma::error::unreadable(output, &e))?;
    let found = judge(&results, &predictions)?;
    print(&match args.format {
        Format::Json => json::pretty(&found)?,
        _ => page(None).fitted(block::model_errors(&found)),
    })?;
    Ok(code)
}

/// Measures all rows of `path`. An interrupt ends it after the last row that is complete.
pub fn measure_rows(
    path: &Path,
    output: &Path,
    args: &BlockArgs,
    options: &Options,
    ascii: bool,
) -> Result<ExitCode> {
    let rows = rows::read(&files::read_rows(path, output)?)?.rows;
    let jobs = jobs(args.jobs, options)?;
    let (mut file, done) =
        RowsFile::open(output, path, Existing::asked(args.resume, args.force), &rows)?;
    let mut progress = BatchProgress::new(rows.len(), done, ascii);
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
    Ok(exit_code(128 + signal))
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

/// The file of results.
pub struct RowsFile {
    path: PathBuf,
    file: File,
    /// Bytes of complete rows.
    length: u64,
    /// Largest permitted file size (RLIMIT_FSIZE).
    limit: u64,
}

/// Treatment of a file that has rows already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Refuse,
    Continue,
    Replace,
}

impl Existing {
    pub fn asked(resume: bool, force: bool) -> Self {
        match (resume, force) {
            (true, _) => Self::Continue,
            (_, true) => Self::Replace,
            _ => Self::Refuse,
        }
    }
}

impl RowsFile {
    /// Creates the file for the rows of `batch`, or continues after the complete rows of an earlier run; also returns how many
    /// these are.
    pub fn open(
        path: &Path,
        batch: &Path,
        existing: Existing,
        rows: &[Row],
    ) -> Result<(Self, usize)> {
        if is_stdout(path) {
            return Err(Error::usage("the rows of a batch go to a file")
                .because("a batch that is interrupted continues after the rows that are there")
                .hint("--output FILE"));
        }
        check_output(path, &[batch.to_owned()], "--output")?;
        let has_rows =
            std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
        if existing == Existing::Refuse && has_rows {
            return Err(Error::usage(format!("{} is there already", path.display()))
                .hint("--resume continues it, --force replaces it"));
        }
        let failed = |e: std::io::Error| {
            Error::failed(format!("cannot write {}", path.display())).because(e)
        };
        let limit = getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(soft, _)| soft);
        let resume = existing == Existing::Continue;
        let (done, length) = if resume { complete(path, rows)? } else { (0, 0) };
        let file = if length > 0 {
            let file = File::options().append(true).open(path).map_err(failed)?;
            file.set_len(length).map_err(failed)?;
            file
        } else if path.metadata().is_ok_and(|found| !found.is_file()) {
            tma::files::open_stream(path).map_err(failed)?
        } else {
            File::create(path).map_err(failed)?
        };
        let mut output = Self { path: path.to_owned(), file, length, limit };
        if length == 0 {
            output.line(HEADER)?;
        }
        Ok((output, done))
    }

    /// Appends a row, completely or not at all.
    pub fn line(&mut self, line: &str) -> Result<()> {
        let line = format!("{line}\n");
        let after = self.length + line.len() as u64;
        if after > self.limit {
            // Writing would end this process with SIGXFSZ.
            return Err(self.full(std::io::Error::from(ErrorKind::FileTooLarge)));
        }
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // A pipe or device has no length to restore.
            let _ = self.file.set_len(self.length);
            return Err(self.full(error));
        }
        self.length = after;
        Ok(())
    }

    fn full(&self, error: std::io::Error) -> Error {
        let what = format!("cannot write {}", self.path.display());
        let hint = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("make room on the disk"),
            ErrorKind::FileTooLarge => Some("raise the limit on file sizes (ulimit -f)"),
            _ => None,
        };
        let error = Error::failed(what).because(error);
        match hint {
            Some(hint) => error.hint(format!("{hint}, then rerun with --resume to continue")),
            None => error,
        }
    }
}

/// Complete rows of an earlier run, and their bytes.
fn complete(path: &Path, rows: &[Row]) -> Result<(usize, u64)> {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok((0, 0)),
        Ok(meta) if !meta.is_file() => {
            return Err(Error::usage(format!("cannot resume {}", path.display()))
                .because("it is not a regular file")
                .hint("leave out --resume"));
        }
        _ => {}
    }
    report::render::block::finished(&files::read_file(path)?, rows)
}
