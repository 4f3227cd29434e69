//! A file: its report, its functions, and their code as it is asked for; in a thread of its own.

use super::explain::explain;
use super::{Queue, Samples, Wanted, caught, told};
use crate::tui::action::Action;
use crate::tui::events::Message;
use crate::tui::state::{Texts, WITH_LINES, Which};
use engine::documents::{Report, Source};
use engine::hot::recording::{self, FileKind};
use engine::topdown::{ImportAsk, imported};
use pmu::machine::Machine;
use profile::hot::{Annotated, Filter, Profile, threads};
use profile::recording::Recording;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use tma::tables::Library;

/// Longest line of source that is shown, and most lines that a file is searched for it.
const LONGEST_LINE: u64 = 4096;
const MOST_LINES: u32 = 1_000_000;

/// Reads the file, then answers requests for the code of functions.
pub fn serve(
    path: PathBuf,
    samples: Samples,
    tables: (Library, Option<String>),
    wanted: Receiver<Wanted>,
    queue: Queue,
) {
    std::thread::spawn(move || {
        if let Some(recording) = told_of(caught(|| read(&path, tables, &queue)), &queue) {
            answer(&recording, &samples, &wanted, &queue);
        }
    });
}

/// Attributes samples, then answers requests for the code of functions; in a thread of its own.
pub fn serve_recording(
    recording: Recording,
    samples: Samples,
    wanted: Receiver<Wanted>,
    queue: Queue,
) {
    std::thread::spawn(move || answer(&recording, &samples, &wanted, &queue));
}

/// The recording. A file of which nothing can be shown ends the program, as it ends `report`.
fn told_of(
    read: Result<tma::Result<Option<Recording>>, String>,
    queue: &Queue,
) -> Option<Recording> {
    match read {
        Ok(Ok(recording)) => return recording,
        Ok(Err(error)) => drop(queue.0.send(Message::Failed(error))),
        Err(why) => queue.send(Action::NoFunctions(why)),
    }
    None
}

fn answer(recording: &Recording, samples: &Samples, wanted: &Receiver<Wanted>, queue: &Queue) {
    queue.send(Action::Threads(threads(recording)));
    let which = Which { event: None, threads: samples.threads.clone() };
    let count = |which: &Which| match caught(|| count(recording, which, samples, queue)) {
        Ok(profile) => Some(profile),
        Err(why) => {
            queue.send(Action::NoFunctions(why));
            None
        }
    };
    let mut profile = count(&which);
    while let Ok(first) = wanted.recv() {
        // Who leafs through functions waits for the last one only.
        let (mut code, mut other) = (None, None);
        for one in std::iter::once(first).chain(wanted.try_iter()) {
            match one {
                Wanted::Code(index) => code = Some(index),
                Wanted::Samples(which) => (code, other) = (None, Some(which)),
            }
        }
        if let Some(which) = other {
            profile = count(&which);
        }
        if let (Some(index), Some(profile)) = (code, &mut profile) {
            queue.send(annotate(profile, index));
        }
    }
}

/// Attributes samples; what is known at once goes out while lines are looked up.
fn count(recording: &Recording, which: &Which, samples: &Samples, queue: &Queue) -> Profile {
    let (numbers, names): (Vec<&String>, Vec<&String>) =
        which.threads.iter().partition(|t| t.parse::<u32>().is_ok());
    let filter = Filter {
        event: which.event,
        threads: numbers.iter().filter_map(|n| n.parse().ok()).collect(),
        names: names.into_iter().cloned().collect(),
        ..Filter::default()
    };
    let mut profile = Profile::new(recording, &filter, samples.search.clone());
    queue.send(Action::Functions(Box::new((*profile).clone())));
    // Lines take longer than names: what is there is shown meanwhile.
    profile.find_lines(WITH_LINES);
    queue.send(Action::Functions(Box::new((*profile).clone())));
    profile
}

fn annotate(profile: &mut Profile, index: usize) -> Action {
    let annotated = caught(|| {
        let annotated = profile.annotate(index);
        let texts = texts(&annotated);
        (annotated, texts)
    });
    match annotated {
        Ok((annotated, texts)) => Action::Annotated(index, Box::new(annotated), texts),
        Err(why) => Action::NotAnnotated(index, why),
    }
}

/// The report goes out first; then come samples, if there are any.
fn read(
    path: &Path,
    tables: (Library, Option<String>),
    queue: &Queue,
) -> tma::Result<Option<Recording>> {
    if recording::kind(path)? == FileKind::PerfData {
        let mut report = Report::new(Source::Imported);
        report.subject = vec![path.display().to_string()];
        report.notes.push("a perf.data file holds samples, and no counts to make a tree of".into());
        queue.send(Action::Report(Box::new(report)));
        return recording::open(path);
    }
    counts(path, tables, queue)?;
    // The counts are there, whatever is wrong with the samples.
    let recording = match recording::open(path) {
        Ok(recording) => recording,
        Err(error) => {
            queue.send(Action::NoFunctions(told(&error)));
            return Ok(None);
        }
    };
    if recording.is_none() {
        let why = "This recording holds counts and no samples. `tdtool record` takes samples, and \
                   so does `perf record`.";
        queue.send(Action::NoFunctions(why.into()));
    }
    Ok(recording)
}

/// Recorded counts: first what is known of intervals, then the whole.
fn counts(
    path: &Path,
    (library, uarch): (Library, Option<String>),
    queue: &Queue,
) -> tma::Result<()> {
    let ask = |intervals| ImportAsk {
        files: vec![path.to_owned()],
        uarch: uarch.clone(),
        here: Some(Machine::detect),
        intervals,
        ..ImportAsk::default()
    };
    let whole = imported(&library, &ask(false))?;
    if let Some(report) = whole.first() {
        queue.send(Action::Explained(explain(&library, report)));
    }
    // History is a help; without it the report stands as well.
    for report in imported(&library, &ask(true)).unwrap_or_default() {
        if report.interval.is_some() {
            queue.send(Action::Interval(Box::new(report)));
        }
    }
    for report in whole {
        queue.send(Action::Report(Box::new(report)));
    }
    Ok(())
}

/// The lines of source of a function, where their files are there.
fn texts(annotated: &Annotated) -> Texts {
    let mut wanted: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (file, line) in annotated.blocks.iter().flat_map(|b| &b.lines).flat_map(|l| &l.source) {
        wanted.entry(file).or_default().insert(*line);
    }
    let mut texts = Texts::new();
    for (name, lines) in wanted {
        let regular = std::fs::metadata(name).is_ok_and(|m| m.is_file());
        if let Some(file) = File::open(name).ok().filter(|_| regular) {
            read_lines(BufReader::new(file), name, &lines, &mut texts);
        }
    }
    texts
}

fn read_lines(mut file: impl BufRead, name: &str, lines: &BTreeSet<u32>, texts: &mut Texts) {
    let last = lines.last().copied().unwrap_or(0).min(MOST_LINES);
    let mut line = Vec::new();
    for number in 1..=last {
        line.clear();
        match (&mut file).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if lines.contains(&number) => {
                let text = String::from_utf8_lossy(&line).trim_end().replace('\t', "    ");
                texts.insert((name.to_owned(), number), text);
            }
            Ok(_) => {}
        }
        if !line.ends_with(b"\n") && line.len() as u64 == LONGEST_LINE {
            // No source is written like this; the numbers of further lines would be wrong.
            return;
        }
    }
}
