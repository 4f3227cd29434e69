//! `tdtool deps --batch`: rows in, rows out.

use crate::cli::code::read;
use crate::message::note;
use bench::batch::rows;
use engine::deps::DepsAnalyser;
use pmu::perf::Signals;
use report::documents::deps::Census;
use report::files::{check_output, write_whole};
use report::render::deps;
use report::render::deps::HEADER;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use tma::Result;

/// Analyses all rows of `path`; those until then if it is interrupted.
pub fn run(
    path: &Path,
    output: &Path,
    unmodelled: Option<&Path>,
    analyser: &mut DepsAnalyser,
    seeds: u32,
) -> Result<ExitCode> {
    check_output(output, &[path.to_owned()], "--output")?;
    let rows = rows::read(&read::rows(path, output)?)?.rows;
    let mut out = format!("{HEADER}\n");
    let mut counted = Census::default();
    let signals = Signals::catch()?;
    let (mut done, mut interrupted) = (0, None);
    for one in &rows {
        interrupted = signals.next().map(|(number, _)| number);
        if interrupted.is_some() {
            break;
        }
        let line = analyser.row(one, seeds, &mut counted);
        let _ = writeln!(out, "{line}");
        done += 1;
    }
    write_whole(output, out.as_bytes(), &[path.to_owned()], "--output")?;
    if let Some(path) = unmodelled {
        write_whole(path, deps::census(&counted).as_bytes(), &[], "--unmodelled")?;
    }
    let Some(signal) = interrupted else { return Ok(ExitCode::SUCCESS) };
    note(&format!("interrupted: {done} of {} rows written", rows.len()));
    Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)))
}
