//! The functions of a recording, and their code when it is asked for, in a thread of its own.

use super::file;
use super::queue::Queue;
use super::request::Request;
use super::source::source_lines;
use crate::settings::{Samples, Settings};
use crate::tui::action::BackgroundResult;
use crate::tui::events::Message;
use crate::tui::failure::{Failure, catch_panic, paragraph};
use crate::tui::state::{Counts, Loads, SampleFilter, Searchable, WITH_LINES};
use profile::files::SearchPaths;
use profile::hot::{Calls, Filter, Overview, Profile, overview};
use profile::recording::Stream;
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
///
/// # Errors
/// The recording cannot be read.
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
