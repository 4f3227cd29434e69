//! Reads the functions of a recording, and their code when it is asked for, in a thread of its own. The report of a
//! file is sent before.

use crate::settings::{Samples, Settings};
use crate::tui::action::BackgroundResult;
use crate::tui::events::{Message, Queue};
use crate::tui::state::{
    Counts, Failure, Loads, SampleFilter, Searchable, SourceLines, WITH_LINES, catch_panic,
    paragraph,
};
use engine::estimate::replay;
use engine::hot;
use engine::topdown::{ImportAsk, imported};
use pmu::machine::this_cpu;
use profile::counts::FileKind;
use profile::files::SearchPaths;
use profile::hot::{Annotated, Calls, Filter, Overview, Profile, overview};
use profile::recording::Stream;
use report::documents::report_file::explain;
use report::documents::{Report, Source, evidence, report_file};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// A request.
pub enum Request {
    /// The code of the function with this index.
    Code(usize),
    /// Callers and callees of the function of this name.
    Calls(String),
    /// The functions of other samples.
    Functions(SampleFilter),
}

/// Reads the file, then answers requests.
pub fn serve_file(
    path: PathBuf,
    samples: Samples,
    settings: Arc<Settings>,
    requests: Receiver<Request>,
    queue: Queue,
) {
    std::thread::spawn(move || match catch_panic(|| read_file(&path, &settings, &queue)) {
        Ok(Ok(Some(recording))) => {
            let Some(found) = look_through(&recording, &queue) else { return };
            found
                .branches
                .then(|| count_branches(path.clone(), samples.search.clone(), queue.clone()));
            found.accesses.then(|| sum_loads(path.clone(), samples.search.clone(), queue.clone()));
            answer(&recording, &samples, &requests, &queue);
        }
        Ok(Ok(None)) => {}
        // A file of which nothing can be shown ends the program, as it ends `tdtool report`.
        Ok(Err(error)) => queue.message(Message::Failed(error)),
        Err(panic) => queue.send(BackgroundResult::NoFunctions(panic.to_string())),
    });
}

/// Sends the threads of a recording; `None`: it cannot be read.
fn look_through(recording: &Stream, queue: &Queue) -> Option<Overview> {
    match overview(recording) {
        Ok(mut found) => {
            queue.send(BackgroundResult::Threads(std::mem::take(&mut found.threads)));
            Some(found)
        }
        Err(error) => {
            queue.send(BackgroundResult::NoFunctions(paragraph(&error)));
            None
        }
    }
}

/// Counts by a recording's branch stacks, while its functions are shown.
fn count_branches(path: PathBuf, search: SearchPaths, queue: Queue) {
    std::thread::spawn(move || {
        let found =
            catch_panic(|| engine::branches::branches(std::slice::from_ref(&path), None, &search));
        // Without them the screens are those of a recording without branch stacks.
        if let Some(document) = found.ok().and_then(Result::ok) {
            queue.send(BackgroundResult::Counts(Counts::of_events(&document)));
        }
    });
}

/// Sums a recording's samples of loads, while its functions are shown.
fn sum_loads(path: PathBuf, search: SearchPaths, queue: Queue) {
    std::thread::spawn(move || {
        let found =
            catch_panic(|| engine::recorded_loads::loads(std::slice::from_ref(&path), &search));
        // Without them the screens are those of a recording without samples of loads.
        if let Some(document) = found.ok().and_then(Result::ok) {
            queue.send(BackgroundResult::Loads(Loads::of_events(&document)));
        }
    });
}

/// Answers requests about a recording.
pub fn serve(recording: Arc<Stream>, samples: Samples, requests: Receiver<Request>, queue: Queue) {
    std::thread::spawn(move || {
        if look_through(&recording, &queue).is_some() {
            answer(&recording, &samples, &requests, &queue);
        }
    });
}

fn answer(recording: &Stream, samples: &Samples, requests: &Receiver<Request>, queue: &Queue) {
    let attribute = |filter: &SampleFilter| {
        let profile = catch_panic(|| attribute(recording, filter, samples, queue));
        let profile = profile.and_then(|read| read.map_err(Failure::Error));
        profile.map_err(|why| queue.send(BackgroundResult::NoFunctions(why.to_string()))).ok()
    };
    let all = SampleFilter { threads: samples.threads.clone(), ..SampleFilter::default() };
    let mut shown = all.clone();
    let mut profile = attribute(&all);
    let mut chains: Option<Profile> = None;
    while let Ok(first) = requests.recv() {
        // Only the last of several waiting requests counts.
        let (mut code, mut functions, mut calls) = (None, None, None);
        for one in std::iter::once(first).chain(requests.try_iter()) {
            match one {
                Request::Code(index) => code = Some(index),
                Request::Calls(name) => calls = Some(name),
                Request::Functions(filter) => (code, functions) = (None, Some(filter)),
            }
        }
        if let Some(filter) = functions {
            profile = attribute(&filter);
            (shown, chains) = (filter, None);
        }
        if let Some(name) = calls {
            let found = calls_of(recording, &shown, samples, &mut chains, &name);
            queue.send(BackgroundResult::Calls(name, found.map(Box::new)));
        }
        if let (Some(index), Some(profile)) = (code, &mut profile) {
            queue.send(annotate(profile, index));
        }
    }
}

/// Attributes samples to functions; source lines take longer and are sent later.
fn attribute(
    recording: &Stream,
    filter: &SampleFilter,
    samples: &Samples,
    queue: &Queue,
) -> tma::Result<Profile> {
    let mut profile = profile_of(recording, filter, samples)?;
    queue.send(BackgroundResult::Functions(Searchable::boxed((*profile).clone())));
    profile.find_lines(WITH_LINES);
    queue.send(BackgroundResult::Functions(Searchable::boxed((*profile).clone())));
    Ok(profile)
}

/// The samples that a filter lets through, by function.
pub fn profile_of(
    recording: &Stream,
    filter: &SampleFilter,
    samples: &Samples,
) -> tma::Result<Profile> {
    Profile::new(recording, &of_threads(filter), samples.search.clone())
}

fn of_threads(filter: &SampleFilter) -> Filter {
    Filter {
        event: filter.event,
        time: filter.time,
        threads: filter.threads.iter().map(|word| word.as_str().into()).collect(),
        ..Filter::default()
    }
}

/// Callers and callees of a function; the chains are read when they are first asked for.
pub fn calls_of(
    recording: &Stream,
    filter: &SampleFilter,
    samples: &Samples,
    chains: &mut Option<Profile>,
    name: &str,
) -> Result<Calls, Failure> {
    if chains.is_none() {
        let read = catch_panic(|| {
            let filter = Filter { chains: true, ..of_threads(filter) };
            Profile::new(recording, &filter, samples.search.clone())
        });
        *chains = Some(read.and_then(|read| read.map_err(Failure::Error))?);
    }
    match chains {
        Some(profile) if profile.has_chains() => catch_panic(|| profile.calls(name)),
        _ => Err(Failure::NoChains),
    }
}

/// The code of a function.
pub fn annotate(profile: &mut Profile, index: usize) -> BackgroundResult {
    let annotated = catch_panic(|| {
        let annotated = profile.annotate(index);
        let lines = source_lines(&annotated);
        (annotated, lines)
    });
    match annotated {
        Ok((annotated, lines)) => BackgroundResult::Annotated(index, Box::new(annotated), lines),
        Err(panic) => BackgroundResult::NotAnnotated(index, panic.to_string()),
    }
}

/// Sends the report of the file at `path`, and returns its samples, if there are any.
pub fn read_file(path: &Path, settings: &Settings, queue: &Queue) -> tma::Result<Option<Stream>> {
    if let Some(report) = document(path) {
        send_document(report, settings, queue);
        return Ok(None);
    }
    let kind = FileKind::of(path)?;
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
        return hot::stream_as(path, kind, true);
    }
    send_counts(path, settings, queue)?;
    // Without samples the counts are still shown.
    let recording = match hot::stream_as(path, kind, true) {
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

/// Maximum length of a line in bytes, and maximum number of lines read from a file.
const LONGEST_LINE: u64 = 4096;
const MOST_LINES: u32 = 1_000_000;

/// The source lines of the instructions, as far as their files exist.
pub fn source_lines(annotated: &Annotated) -> SourceLines {
    let mut wanted: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (file, line) in annotated.blocks.iter().flat_map(|b| &b.lines).flat_map(|l| &l.source) {
        wanted.entry(file).or_default().insert(*line);
    }
    let mut found = SourceLines::new();
    for (name, lines) in wanted {
        let regular = std::fs::metadata(name).is_ok_and(|m| m.is_file());
        if let Some(file) = File::open(name).ok().filter(|_| regular) {
            read_lines(BufReader::new(file), name, &lines, &mut found);
        }
    }
    found
}

fn read_lines(mut file: impl BufRead, name: &str, lines: &BTreeSet<u32>, found: &mut SourceLines) {
    let last = lines.last().copied().unwrap_or(0).min(MOST_LINES);
    let mut line = Vec::new();
    for number in 1..=last {
        line.clear();
        match (&mut file).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if lines.contains(&number) => {
                let text = String::from_utf8_lossy(&line).trim_end().replace('\t', "    ");
                found.insert((name.to_owned(), number), text);
            }
            Ok(_) => {}
        }
        if !line.ends_with(b"\n") && line.len() as u64 == LONGEST_LINE {
            // Not source code; the numbers of further lines would be wrong.
            return;
        }
    }
}
