//! Everything that runs in the background, and what it is asked to do.

use super::blocks::{self, Job};
use super::live::{self, Live, What};
use super::queue::Queue;
use super::request::Request;
use super::{comparison, recording};
use crate::settings::{Samples, Settings, Subject};
use crate::tui::action::{Action, BackgroundResult};
use crate::tui::events::Message;
use crate::tui::failure::Failure;
use crate::tui::state::SampleFilter;
use bench::Progress;
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

/// The background threads.
pub struct Background {
    queue: Queue,
    live: Option<Live>,
    functions: Sender<Request>,
    blocks: Sender<Job>,
    /// The block measurements under way.
    measurements: HashMap<u64, (Progress, Instant)>,
}

impl Background {
    /// Starts what `subject` needs.
    pub fn start(subject: &Subject, settings: Settings, to: Sender<Message>) -> Self {
        let queue = Queue(to);
        let settings = Arc::new(settings);
        let (functions, requests) = channel();
        let (blocks, jobs) = channel();
        let options = match subject {
            Subject::Block(request) => Some(request.options.clone()),
            _ => None,
        };
        blocks::serve(jobs, options, settings.clone(), queue.clone());
        let live = match subject {
            Subject::Command(command, samples) => {
                let (what, samples) = (What::Command(command.clone()), samples.clone());
                Some(live::start(what, samples, settings, requests, queue.clone()))
            }
            Subject::Process(pid, samples) => {
                let (what, samples) = (What::Process(*pid), samples.clone());
                Some(live::start(what, samples, settings, requests, queue.clone()))
            }
            Subject::System => Some(live::start(
                What::System,
                Samples::default(),
                settings,
                requests,
                queue.clone(),
            )),
            Subject::File(path, samples) => {
                let (path, samples) = (path.clone(), samples.clone());
                recording::serve_file(path, samples, settings, requests, queue.clone());
                None
            }
            Subject::Pair(a, b, samples) => {
                let search = samples.search.clone();
                comparison::compare([a.clone(), b.clone()], search, settings, queue.clone());
                None
            }
            Subject::Block(_) => None,
        };
        Self { queue, live, functions, blocks, measurements: HashMap::new() }
    }

    /// Reads the code of a function.
    pub fn annotate(&self, index: usize) {
        if self.functions.send(Request::Code(index)).is_err() {
            self.queue.send(BackgroundResult::NotAnnotated(index, Failure::NoSamples.to_string()));
        }
    }

    /// Finds callers and callees of a function.
    pub fn calls(&self, name: String) {
        if let Err(refused) = self.functions.send(Request::Calls(name))
            && let Request::Calls(name) = refused.0
        {
            self.queue.send(BackgroundResult::Calls(name, Err(Failure::NoSamples)));
        }
    }

    /// Attributes other samples to functions.
    pub fn profile(&self, filter: SampleFilter) {
        if self.functions.send(Request::Functions(filter)).is_err() {
            self.queue.send(BackgroundResult::NoFunctions(Failure::NoSamples.to_string()));
        }
    }

    /// Estimates top-down of the command.
    pub fn estimate(&self) {
        if !self.live.as_ref().is_some_and(Live::estimate) {
            let why = Failure::NoSamples.to_string();
            self.queue.send(BackgroundResult::NotEstimated(why));
        }
    }

    /// Writes a new file; an existing one is not overwritten.
    pub fn save(&self, path: PathBuf, content: String) {
        let queue = self.queue.clone();
        // A slow disk must not block the keys.
        std::thread::spawn(move || {
            let file = File::options().write(true).create_new(true).open(&path);
            let written = file.and_then(|mut file| file.write_all(content.as_bytes()));
            let written = written.map_err(|e| match e.kind() {
                ErrorKind::AlreadyExists => Failure::Exists,
                _ => Failure::Unwritten(e.into()),
            });
            queue.send(BackgroundResult::Saved(path, written));
        });
    }

    /// Measures a block.
    pub fn measure(&mut self, id: u64, bytes: Vec<u8>) {
        let watch = Progress::default();
        self.measurements.insert(id, (watch.clone(), Instant::now()));
        if self.blocks.send(Job { id, bytes, watch }).is_err() {
            self.queue.send(BackgroundResult::Measured(id, Err(Failure::NoProfiler)));
        }
    }

    /// Cancels the measurement of a block.
    pub fn cancel(&mut self, id: u64) {
        if let Some((watch, _)) = self.measurements.remove(&id) {
            watch.cancel();
        }
    }

    /// The progress of a block's measurement.
    pub fn progress(&self, id: u64) -> Option<Action> {
        let (watch, start) = self.measurements.get(&id)?;
        let seconds = start.elapsed().as_secs_f64();
        Some(Action::Background(BackgroundResult::Progress(id, seconds, watch.passes())))
    }

    /// Ends everything; returns the status of the measured command, if that had ended before.
    pub fn end(mut self) -> Option<u8> {
        for (watch, _) in self.measurements.values() {
            watch.cancel();
        }
        self.live.take().and_then(Live::end)
    }
}
