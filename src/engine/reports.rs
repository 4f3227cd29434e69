//! The report of a file, by its kind: counts give the tree, samples the hot code, a document is one already, evidence
//! is evaluated again. And that of a live measurement, with the hot code of its samples.

use crate::commands::Carried;
use crate::conclusion::conclude;
use crate::estimate::replay;
use crate::hot::hottest::never_sampled;
use crate::hot::{self, Temporary};
use crate::record::{Note, SampleAsk, record, words};
use crate::sampled::attributed::{known_time, profile};
use crate::sampled::code::{self, CodeAsk};
use crate::sampled::located::Located;
use crate::topdown::live::{LiveAsk, Outcome, Update, live};
use crate::topdown::{ImportAsk, imported, named, of_counts};
use pmu::Target;
use pmu::machine::{Machine, Moment, boot_id};
use pmu::sampling::CallChains;
use profile::counts::{FileKind, read_as};
use profile::hot::Busiest;
use profile::recording::{About, Stream};
use profile::session;
use report::documents::{Finding, FindingKind, Report, Source, evidence, report_file};
use std::path::Path;
use tma::tables::Library;
use tma::{Error, Result};

/// Called with the number of measured blocks and of all.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// The reports of files: counts, a session, or samples of perf. Code is in the last of them.
///
/// # Errors
/// As [`imported()`]; samples that cannot be read.
pub fn of_files(
    library: &Library,
    ask: &ImportAsk,
    code: Option<&CodeAsk>,
    progress: Progress<'_>,
) -> Result<Vec<Report>> {
    let mut reports = read(library, ask, code, progress)?;
    // A finished document has its own.
    let new = reports.iter_mut().filter(|report| report.conclusion.is_none());
    // --uarch names the core of the recording, which this one need not be.
    let carried = Carried::new(None, library, false);
    new.for_each(|report| conclude(report, None, &carried));
    Ok(reports)
}

fn read(
    library: &Library,
    ask: &ImportAsk,
    code: Option<&CodeAsk>,
    progress: Progress<'_>,
) -> Result<Vec<Report>> {
    let [path] = ask.files.as_slice() else { return imported(library, ask) };
    let kind = FileKind::of(path)?;
    let mut reports = match kind {
        FileKind::Document => return reports(path, ask, code),
        FileKind::Evidence => return evaluated(path, library, ask, code),
        FileKind::PerfData => Vec::new(),
        FileKind::Session | FileKind::PerfStatRecord | FileKind::Other => {
            of_counts(library, ask, read_as(path, kind)?)?
        }
    };
    let samples = code.map(|ask| hot::stream_as(path, kind, ask.filter.chains));
    let Some(recording) = samples.transpose()?.flatten() else {
        if reports.is_empty() {
            return Err(Error::usage(format!("{} has samples only", tma::files::name(path)))
                .hint("leave out --no-code"));
        }
        return match code.and_then(CodeAsk::needs_samples) {
            Some(option) => Err(without_samples(path, option)),
            None => Ok(reports),
        };
    };
    let is_empty =
        |about: &About| !about.samples.is_empty() && about.samples.iter().all(|n| *n == 0);
    if let Some(option) =
        code.and_then(CodeAsk::needs_samples).filter(|_| is_empty(&recording.about))
    {
        return Err(without_samples(path, option));
    }
    if reports.is_empty() {
        reports.push(frame(path, &recording.about));
    }
    if let (Some(code), Some(last)) = (code, reports.last_mut()) {
        let about = &recording.about;
        let located = Located::new(library, ask.uarch.as_deref(), last, about);
        let event = code.by.as_ref().map(|by| located.chosen(by, &about.events)).transpose()?;
        let code = by_event(code, event);
        if let (None, true) = (code.filter.event, code.exports()) {
            // The samples note it themselves where they are not those of the first event.
            let others = about.other_events(about.main_event());
            last.notes.extend(others.filter(|_| !about.is_partial()));
        }
        known_time(&recording, &code.filter)?;
        enter(last, &recording, &code, &located, progress)?;
    }
    Ok(reports)
}

/// The error where `option` is asked of a file with counts only.
fn without_samples(path: &Path, option: &str) -> Error {
    Error::failed(format!("{} has no samples, which {option} needs", tma::files::name(path)))
        .because("it holds counts only, or the run was too short for a sample")
        .hint("record samples with the counts: `tdtool record -g -o FILE -- COMMAND`")
}

/// A report on samples of perf: there are no counts.
fn frame(path: &Path, recording: &About) -> Report {
    let mut report = Report::new(Source::Imported);
    report.subject = vec![path.display().to_string()];
    report.subject.extend(recording.processor.clone());
    report.command.clone_from(&recording.command);
    report.findings.push(Finding {
        kind: FindingKind::NotMeasured,
        node: None,
        text: "The top-down tree was not measured: perf.data holds samples, no counts of slots."
            .to_owned(),
        meaning: None,
        causes: None,
        next: Some("`tdtool record` keeps counts and samples of the same run.".to_owned()),
        place: report::documents::report::Place::default(),
    });
    report
}

fn enter(
    report: &mut Report,
    recording: &Stream,
    ask: &CodeAsk,
    located: &Located,
    progress: Progress<'_>,
) -> Result<Option<i32>> {
    let mut profile = profile(recording, ask)?;
    // The counts of the same file have noted these already.
    // So has the tree that there is no core PMU.
    let says_no_pmu = report.nodes.iter().any(|node| node.no_pmu);
    let told = |note: &str| {
        says_no_pmu && Note::parse(note) == Note::NoPmu
            || report.notes.iter().any(|told| told.ends_with(note))
    };
    profile.keep_notes(|note| !told(note));
    let interrupted = code::enter(report, &mut profile, ask, located, progress)?;
    if let Some(sampled) = &mut report.sampled {
        sampled.running = profile.busiest.clone().filter(|of| runs(of, &recording.about));
    }
    Ok(interrupted)
}

/// Whether a process of the recording still runs here: a number may have become another's.
fn runs(of: &Busiest, recording: &About) -> bool {
    let is_here = recording.boot.is_some() && recording.boot == boot_id();
    let name = i32::try_from(of.pid).ok().filter(|_| is_here).and_then(named);
    name.is_some_and(|name| name == tma::text::name(&of.name))
}

/// A live measurement.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    /// This machine.
    pub machine: &'a Machine,
    /// The tables.
    pub library: &'a Library,
    /// The measurement.
    pub ask: &'a LiveAsk,
    /// Samples to take, too: then the report says where the time goes.
    pub code: Option<(&'a CodeAsk, &'a SampleAsk)>,
}

/// The report of a live measurement. Samples lie in a temporary file meanwhile.
///
/// # Errors
/// As [`live`]; the temporary file cannot be written.
pub fn of_live(
    of: Measured<'_>,
    update: &mut dyn FnMut(Update),
    progress: Progress<'_>,
) -> Result<Outcome> {
    let mut outcome = measured(of, update, progress)?;
    let carried = Carried::new(of.ask.uarch.as_deref(), of.library, of.ask.user_only);
    conclude(&mut outcome.report, Some(of.ask), &carried);
    Ok(outcome)
}

fn measured(
    Measured { machine, library, ask, code: wanted }: Measured<'_>,
    update: &mut dyn FnMut(Update),
    progress: Progress<'_>,
) -> Result<Outcome> {
    // Several runs have no one run that samples could be of.
    let once = ask.repeats <= 1 && ask.multiplex && !ask.drilldown;
    let Some((code, sample)) = wanted.filter(|_| once) else {
        let mut outcome = live(machine, library, ask, update)?;
        if wanted.is_some() {
            let why = "sampling needs a single run";
            outcome.report.notes.push(format!("no hot functions and blocks: {why}"));
        }
        return Ok(outcome);
    };
    let file = Temporary::new()?;
    let path = file.path();
    let since = Moment::now();
    let recorded = record(machine, library, ask, Some(sample), path, update);
    let recorded = recorded.map_err(|error| file.explained(error))?;
    let mut outcome = recorded.outcome;
    if let Some(error) = recorded.failed.map(|error| file.explained(error)) {
        let why = error.cause().unwrap_or_default();
        outcome.report.notes.push(format!("the last samples are missing: {}: {why}", error.what()));
    }
    if recorded.sampled.is_none() || !session::has_samples(path)? {
        outcome.report.notes.extend(words(&recorded.notes).into_iter().chain(recorded.losses));
        let report = &mut outcome.report;
        match (&recorded.sampled, &code.estimate) {
            (None, None) => {}
            (None, Some(_)) => {
                report.notes.push("nothing was estimated: that needs samples".into())
            }
            (Some(_), None) => report.notes.push(session::NO_SAMPLES.to_owned()),
            (Some(_), Some(_)) if outcome.interrupted.is_some() => {
                let why = "nothing was estimated: interrupted before the first sample";
                report.notes.push(why.to_owned());
            }
            (Some(_), Some(_)) => {
                let (why, remedy) = never_sampled(ask, report.duration.unwrap_or(0.0));
                report.notes.push(format!("nothing was estimated: {why}; {remedy}"));
            }
        }
        return Ok(outcome);
    }
    let mut code = code.clone();
    // Of a process that goes on it is not known what the others had.
    let others = since.others().filter(|_| ask.target == Target::Command);
    let processors = machine.topology.cpus.len() as f64;
    code.others = others.map(|others| (others.busy + others.stolen) * processors);
    let is_whole = code.filter.threads.is_empty() && code.filter.time.is_none();
    code.filter.entries = is_whole && sample.call_chains == CallChains::FramePointers;
    let recording = session::open(path, code.filter.chains || code.filter.entries)?;
    // Whoever ended the measurement waits for its report, not for further runs.
    if outcome.interrupted.is_some() && code.count.take().is_some() {
        outcome.report.notes.push("entries were not counted: interrupted".to_owned());
    }
    let about = &recording.about;
    let located = Located::new(library, ask.uarch.as_deref(), &outcome.report, about);
    let event = code.by.as_ref().map(|by| located.chosen(by, &about.events)).transpose();
    let event = event.unwrap_or_else(|error| {
        // The command has run: what was measured is reported.
        let cause = error.cause().map(|c| format!(": {c}")).unwrap_or_default();
        outcome.report.notes.push(format!("{}{cause}", error.what()));
        None
    });
    code = by_event(&code, event);
    if outcome.interrupted.is_some() && code.estimate.take().is_some() {
        outcome.report.notes.push(match ask.target {
            Target::Command => MAY_NOT_END.to_owned(),
            _ => "no estimated top-down: interrupted".to_owned(),
        });
    }
    let interrupted = enter(&mut outcome.report, &recording, &code, &located, progress)?;
    outcome.interrupted = outcome.interrupted.or(interrupted);
    Ok(outcome)
}

/// The command was interrupted: it may be one that runs until it is ended.
const MAY_NOT_END: &str = "no estimated top-down: interrupted; --duration S estimates a command that does not end, in windows";

/// The question about samples of this event.
fn by_event(ask: &CodeAsk, event: Option<usize>) -> CodeAsk {
    let mut ask = ask.clone();
    ask.filter.event = event.or(ask.filter.event);
    ask
}

/// The reports of a document; with intervals all, else the last.
///
/// # Errors
/// It cannot be read, is another document, or the question needs the recording that it was made of.
fn reports(path: &Path, ask: &ImportAsk, code: Option<&CodeAsk>) -> Result<Vec<Report>> {
    let unreadable = |e: std::io::Error| tma::error::unreadable(path, &e);
    let mut all = report_file::read_all(path, profile::kept::open(path).map_err(unreadable)?)?;
    if let Some(option) = needs_recording(ask, code) {
        return Err(Error::usage(format!("{option} does not apply to a finished report"))
            .because(format!(
                "{} holds values, not what they were computed from",
                tma::files::name(path)
            ))
            .hint("give the session, perf.data or counts that it was made of"));
    }
    if !ask.intervals && all.len() > 1 {
        all.drain(..all.len() - 1);
    }
    all.iter_mut().for_each(|report| shorten(report, code));
    Ok(all)
}

/// Leaves as many functions and blocks as are asked for.
fn shorten(report: &mut Report, code: Option<&CodeAsk>) {
    let (functions, blocks) = code.map_or((0, 0), |ask| (ask.functions, ask.blocks));
    report.functions.truncate(functions);
    report.blocks.truncate(blocks);
    report.loops.truncate(blocks);
    report.sampled = report.sampled.take().filter(|_| code.is_some());
}

/// The report of evidence, evaluated again.
///
/// # Errors
/// It cannot be read or evaluated; the question needs the recording.
fn evaluated(
    path: &Path,
    library: &Library,
    ask: &ImportAsk,
    code: Option<&CodeAsk>,
) -> Result<Vec<Report>> {
    if let Some(option) = needs_recording(ask, code) {
        return Err(Error::usage(format!("{option} does not apply to evidence of an estimate"))
            .because(format!("{} holds what the estimate needs only", tma::files::name(path)))
            .hint("leave it out"));
    }
    let mut report = replay(evidence::read(path)?, library)?;
    shorten(&mut report, code);
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
