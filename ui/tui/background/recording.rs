//! The functions of a recording, and their code when it is asked for, in a thread of its own.

use super::failure::catch_panic;
use super::file;
use super::queue::Queue;
use super::request::Request;
use super::source::source_lines;
use crate::settings::Settings;
use crate::subject::Samples;
use crate::tui::action::BackgroundResult;
use crate::tui::events::Message;
use crate::tui::state::{Counts, Loads, SampleFilter, WITH_LINES};
use profile::files::SearchPaths;
use profile::hot::{Filter, Profile, threads};
use profile::record::Record;
use profile::recording::Recording;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Reads the file, then answers requests.
pub fn serve_file(
    path: PathBuf,
    samples: Samples,
    settings: Arc<Settings>,
    requests: Receiver<Request>,
    queue: Queue,
) {
    std::thread::spawn(move || match catch_panic(|| file::read(&path, &settings, &queue)) {
        Ok(Ok(Some(recording))) => {
            let stacks = recording.records.iter().any(has_branches);
            stacks.then(|| count_branches(path.clone(), samples.search.clone(), queue.clone()));
            let loads = recording.records.iter().any(has_access);
            loads.then(|| sum_loads(path.clone(), samples.search.clone(), queue.clone()));
            answer(&recording, &samples, &requests, &queue);
        }
        Ok(Ok(None)) => {}
        // A file of which nothing can be shown ends the program, as it ends `tdtool report`.
        Ok(Err(error)) => queue.message(Message::Failed(error)),
        Err(panic) => queue.send(BackgroundResult::NoFunctions(panic)),
    });
}

fn has_branches(record: &Record) -> bool {
    matches!(record, Record::Sample { sample, .. } if !sample.branches.is_empty())
}

/// Counts by a recording's branch stacks, while its functions are shown.
fn count_branches(path: PathBuf, search: SearchPaths, queue: Queue) {
    std::thread::spawn(move || {
        let found =
            catch_panic(|| engine::branches::branches(std::slice::from_ref(&path), None, &search));
        // Without them the screens are those of a recording without branch stacks.
        if let Some(counts) = found.ok().and_then(Result::ok).as_ref().and_then(Counts::recorded) {
            queue.send(BackgroundResult::Counts(Box::new(counts)));
        }
    });
}

fn has_access(record: &Record) -> bool {
    matches!(record, Record::Sample { sample, .. }
        if sample.data_source.is_some() || !sample.raw.is_empty())
}

/// Sums a recording's samples of loads, while its functions are shown.
fn sum_loads(path: PathBuf, search: SearchPaths, queue: Queue) {
    std::thread::spawn(move || {
        let found =
            catch_panic(|| engine::recorded_loads::loads(std::slice::from_ref(&path), &search));
        // Without them the screens are those of a recording without samples of loads.
        if let Some(loads) = found.ok().and_then(Result::ok).as_ref().and_then(Loads::recorded) {
            queue.send(BackgroundResult::Loads(Box::new(loads)));
        }
    });
}

/// Answers requests about a recording.
pub fn serve(recording: Recording, samples: Samples, requests: Receiver<Request>, queue: Queue) {
    std::thread::spawn(move || answer(&recording, &samples, &requests, &queue));
}

fn answer(recording: &Recording, samples: &Samples, requests: &Receiver<Request>, queue: &Queue) {
    queue.send(BackgroundResult::Threads(threads(recording)));
    let attribute = |filter: &SampleFilter| {
        let profile = catch_panic(|| attribute(recording, filter, samples, queue));
        profile.map_err(|panic| queue.send(BackgroundResult::NoFunctions(panic))).ok()
    };
    let all = SampleFilter { event: None, threads: samples.threads.clone() };
    let mut profile = attribute(&all);
    while let Ok(first) = requests.recv() {
        // Of several waiting requests only the last one counts.
        let (mut code, mut functions) = (None, None);
        for one in std::iter::once(first).chain(requests.try_iter()) {
            match one {
                Request::Code(index) => code = Some(index),
                Request::Functions(filter) => (code, functions) = (None, Some(filter)),
            }
        }
        if let Some(filter) = functions {
            profile = attribute(&filter);
        }
        if let (Some(index), Some(profile)) = (code, &mut profile) {
            queue.send(annotate(profile, index));
        }
    }
}

/// Attributes samples to functions; source lines take longer and are sent later.
fn attribute(
    recording: &Recording,
    filter: &SampleFilter,
    samples: &Samples,
    queue: &Queue,
) -> Profile {
    let (numbers, names): (Vec<&String>, Vec<&String>) =
        filter.threads.iter().partition(|t| t.parse::<u32>().is_ok());
    let filter = Filter {
        event: filter.event,
        threads: numbers.iter().filter_map(|n| n.parse().ok()).collect(),
        names: names.into_iter().cloned().collect(),
        ..Filter::default()
    };
    let mut profile = Profile::new(recording, &filter, samples.search.clone());
    queue.send(BackgroundResult::Functions(Box::new((*profile).clone())));
    profile.find_lines(WITH_LINES);
    queue.send(BackgroundResult::Functions(Box::new((*profile).clone())));
    profile
}

fn annotate(profile: &mut Profile, index: usize) -> BackgroundResult {
    let annotated = catch_panic(|| {
        let annotated = profile.annotate(index);
        let lines = source_lines(&annotated);
        (annotated, lines)
    });
    match annotated {
        Ok((annotated, lines)) => BackgroundResult::Annotated(index, Box::new(annotated), lines),
        Err(panic) => BackgroundResult::NotAnnotated(index, panic),
    }
}
