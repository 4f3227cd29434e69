//! Background threads, which measure, read and profile; results come back through the queue. This file measures
//! blocks, one after the other, and compares two files.
//!
//! | file | concern |
//! |---|---|
//! | `live` | a live measurement, and its estimate |
//! | `watch` | the functions while it runs |
//! | `recording` | a file's report, functions, and their code |

mod live;
mod recording;
mod watch;

use super::action::{Action, BackgroundResult};
use super::events::{Message, Queue};
use super::state::{Failure, SampleFilter, Searchable, catch_panic};
use crate::settings::{Samples, Settings, Subject};
use bench::{Measurement, Options, Pmu, Progress};
use engine::block::Measurer;
use engine::compared::files;
use isa::code::Block;
use live::{Live, What};
use profile::files::SearchPaths;
use recording::Request;
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
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
        measure_blocks(jobs, options, settings.clone(), queue.clone());
        let measured = match subject {
            Subject::Command(command, samples) => {
                Some((What::Command(command.clone()), samples.clone()))
            }
            Subject::Process(pid, samples) => Some((What::Process(*pid), samples.clone())),
            Subject::System => Some((What::System, Samples::default())),
            _ => None,
        };
        let live = match (measured, subject) {
            (Some((what, samples)), _) => {
                Some(live::start(what, samples, settings, requests, queue.clone()))
            }
            (_, Subject::File(path, samples)) => {
                let (path, samples) = (path.clone(), samples.clone());
                recording::serve_file(path, samples, settings, requests, queue.clone());
                None
            }
            (_, Subject::Pair(a, b, samples)) => {
                let search = samples.search.clone();
                compare([a.clone(), b.clone()], search, settings, queue.clone());
                None
            }
            _ => None,
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

/// A block to measure.
pub struct Job {
    pub id: u64,
    pub bytes: Vec<u8>,
    pub watch: Progress,
}

/// Measures blocks as they come, with `options` or else the default ones and this machine's PMU.
pub fn measure_blocks(
    jobs: Receiver<Job>,
    options: Option<Options>,
    settings: Arc<Settings>,
    queue: Queue,
) {
    std::thread::spawn(move || {
        // A measurer belongs to its thread. It starts with the first block and is used for all.
        let mut shared: Option<Measurer> = None;
        while let Ok(job) = jobs.recv() {
            if job.watch.is_cancelled() {
                continue;
            }
            let result = catch_panic(|| {
                let measurer = match &mut shared {
                    Some(measurer) => measurer,
                    none => none.insert(measurer(options.clone(), &settings)?),
                };
                measured(measurer, &job)
            });
            let result = result.unwrap_or_else(|panic| {
                // The state of the measurer is unknown.
                shared = None;
                Err(panic)
            });
            if !job.watch.is_cancelled() {
                queue.send(BackgroundResult::Measured(job.id, result));
            }
        }
    });
}

/// Measures and explains a block.
fn measured(measurer: &mut Measurer, job: &Job) -> Result<Box<Measurement>, Failure> {
    let block = Block::decode(&job.bytes)?;
    measurer.set_progress(job.watch.clone());
    Ok(Box::new(measurer.measure(&block, false)?))
}

fn measurer(options: Option<Options>, settings: &Settings) -> tma::Result<Measurer> {
    let model = settings.core_model()?;
    let options = options.unwrap_or_else(|| {
        let uarch = settings.uarch.as_deref();
        let pmu = match Pmu::find(settings.machine(), settings.library, uarch, None) {
            Ok(Ok(pmu)) => pmu,
            Ok(Err(finding)) => Pmu::Absent(finding.cause.unwrap_or(finding.what)),
            Err(error) => Pmu::Absent(error.to_string()),
        };
        Options { pmu, ..Options::default() }
    });
    Ok(Measurer::new(options, &model))
}

/// Reads both files, and sends their comparison.
pub fn compare([a, b]: [PathBuf; 2], search: SearchPaths, settings: Arc<Settings>, queue: Queue) {
    std::thread::spawn(move || {
        let ask = settings.comparison(search);
        let found = catch_panic(|| files(settings.library, &ask, [&[a], &[b]]));
        let found = found.and_then(|read| read.map_err(Failure::Error));
        queue.send(BackgroundResult::Compared(found.map(Searchable::boxed)));
    });
}
