//! A file: its report is sent, its samples are returned.

use super::queue::Queue;
use crate::settings::Settings;
use crate::tui::action::BackgroundResult;
use crate::tui::failure::paragraph;
use crate::tui::state::Searchable;
use engine::estimate::replay;
use engine::hot::{self, FileKind};
use engine::topdown::{ImportAsk, imported};
use pmu::machine::this_cpu;
use profile::recording::Stream;
use report::documents::report_file::explain;
use report::documents::{Report, Source, evidence, report_file};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// Sends the report of the file at `path`, and returns its samples, if there are any.
pub fn read(path: &Path, settings: &Settings, queue: &Queue) -> tma::Result<Option<Stream>> {
    if let Some(report) = document(path) {
        send_document(report, settings, queue);
        return Ok(None);
    }
    let kind = hot::kind(path)?;
    if kind == FileKind::Evidence {
        let report = replay(evidence::read(path)?, settings.library)?;
        send_document(report, settings, queue);
        return Ok(None);
    }
    if kind == FileKind::PerfData {
        let mut report = Report::new(Source::Imported);
        report.subject = vec![path.display().to_string()];
        report.notes.push("a perf.data file has samples but no counts for a tree".into());
        queue.send(BackgroundResult::Report(Box::new(report)));
        return hot::stream(path, true);
    }
    send_counts(path, settings, queue)?;
    // Without samples the counts are still shown.
    let recording = match hot::stream(path, true) {
        Ok(recording) => recording,
        Err(error) => {
            queue.send(BackgroundResult::NoFunctions(paragraph(&error)));
            return Ok(None);
        }
    };
    if recording.is_none() {
        let why = "This recording has counts but no samples. `tdtool record` and `perf record` take \
                   samples.";
        queue.send(BackgroundResult::NoFunctions(why.into()));
    }
    Ok(recording)
}

/// The report document in a file, if it is one.
fn document(path: &Path) -> Option<Report> {
    let mut first = [0];
    let mut file = profile::kept::open(path).ok()?;
    file.read_exact(&mut first).ok()?;
    if first == *b"{" { report_file::read(path).ok() } else { None }
}

/// Sends a document's report, and its estimate, if it has one.
fn send_document(mut report: Report, settings: &Settings, queue: &Queue) {
    let why =
        "This is a report without its samples; `tdtool record` writes sessions, which have them.";
    queue.send(BackgroundResult::NoFunctions(why.into()));
    let explanations = explain(settings.library, &report);
    queue.send(BackgroundResult::Explained(Arc::new(explanations)));
    let estimate = report.estimate.take();
    queue.send(BackgroundResult::Report(Box::new(report)));
    if let Some(estimate) = estimate {
        queue.send(BackgroundResult::Estimated(Searchable::boxed(estimate)));
    }
}

/// Sends the reports of the recorded intervals, then the whole report.
fn send_counts(path: &Path, settings: &Settings, queue: &Queue) -> tma::Result<()> {
    let library = settings.library;
    let ask = |intervals| ImportAsk {
        files: vec![path.to_owned()],
        uarch: settings.uarch.clone(),
        here: Some(this_cpu),
        intervals,
        ..ImportAsk::default()
    };
    let whole = imported(library, &ask(false))?;
    if let Some(report) = whole.first() {
        queue.send(BackgroundResult::Explained(Arc::new(explain(library, report))));
    }
    // Without intervals there is no history, but the whole report is still shown.
    for report in imported(library, &ask(true)).unwrap_or_default() {
        if report.interval.is_some() {
            queue.send(BackgroundResult::Interval(Box::new(report)));
        }
    }
    for report in whole {
        queue.send(BackgroundResult::Report(Box::new(report)));
    }
    Ok(())
}
