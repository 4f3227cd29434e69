//! Reports that are documents already, or of evidence, which is evaluated again.

use super::code::CodeAsk;
use crate::estimate::replay;
use crate::topdown::ImportAsk;
use report::documents::{Report, evidence_file, report_file};
use std::path::Path;
use tma::tables::Library;
use tma::{Error, Result};

/// The reports of a document; with intervals all, else the last.
///
/// # Errors
/// It cannot be read, is another document, or the question needs the recording that it was made of.
pub(super) fn reports(path: &Path, ask: &ImportAsk, code: Option<&CodeAsk>) -> Result<Vec<Report>> {
    let unreadable =
        |e: std::io::Error| Error::failed(format!("cannot read {}", path.display())).because(e);
    let mut all = report_file::read_all(path, profile::kept::open(path).map_err(unreadable)?)?;
    if let Some(option) = needs_recording(ask, code) {
        return Err(Error::usage(format!("{option} does not apply to a finished report"))
            .because(format!("{} holds values, not what they were computed from", path.display()))
            .hint("give the session, perf.data or counts that it was made of"));
    }
    if !ask.intervals && all.len() > 1 {
        all.drain(..all.len() - 1);
    }
    for report in &mut all {
        let (functions, blocks) = code.map_or((0, 0), |ask| (ask.functions, ask.blocks));
        report.functions.truncate(functions);
        report.blocks.truncate(blocks);
        report.loops.truncate(blocks);
        report.sampled = report.sampled.take().filter(|_| code.is_some());
    }
    Ok(all)
}

/// The report of evidence, evaluated again.
///
/// # Errors
/// It cannot be read or evaluated; the question needs the recording.
pub(super) fn evaluated(
    path: &Path,
    library: &Library,
    ask: &ImportAsk,
    code: Option<&CodeAsk>,
) -> Result<Vec<Report>> {
    if let Some(option) = needs_recording(ask, code) {
        return Err(Error::usage(format!("{option} does not apply to evidence of an estimate"))
            .because(format!("{} holds what the estimate needs only", path.display()))
            .hint("leave it out"));
    }
    let mut report = replay(evidence_file::read(path)?, library)?;
    let (functions, blocks) = code.map_or((0, 0), |ask| (ask.functions, ask.blocks));
    report.functions.truncate(functions);
    report.blocks.truncate(blocks);
    report.loops.truncate(blocks);
    report.sampled = report.sampled.take().filter(|_| code.is_some());
    report.conclusion = None;
    report.notes.push(format!("evaluated again from the evidence in {}", path.display()));
    Ok(vec![report])
}

/// An option that a document cannot answer.
fn needs_recording(ask: &ImportAsk, code: Option<&CodeAsk>) -> Option<&'static str> {
    let nodes = [
        ("--level", ask.ask.level.is_some()),
        ("--nodes", ask.ask.nodes.is_some()),
        ("--bottlenecks", ask.ask.bottlenecks),
        ("--uarch", ask.uarch.is_some()),
    ];
    let of_nodes = nodes.into_iter().find_map(|(option, is_given)| is_given.then_some(option));
    of_nodes.or_else(|| code.and_then(CodeAsk::needs_samples))
}
