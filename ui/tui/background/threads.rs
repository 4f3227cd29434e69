//! What the screens need from the world, in the background: measuring, reading, profiling. Results
//! come back through the queue, as actions.

mod blocks;
mod explain;
mod measure;
mod profile;

use super::action::Action;
use super::events::Message;
use super::state::Which;
use ::profile::symbols::Search;
use bench::{Options, Watch};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;
use tma::tables::Library;

/// What is looked at.
#[derive(Debug, Clone)]
pub enum Source {
    /// A command, measured while it runs.
    Command(Vec<OsString>, Samples),
    /// The whole system, measured.
    System,
    /// Recorded counts, a session, or a perf.data file; which of its samples.
    File(PathBuf, Samples),
    /// One block; its name, its bytes, and how to measure it.
    Block(String, Vec<u8>, Box<Options>),
}

/// Which samples of a recording, and where its programs are.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Of these threads alone, by number or name; all if empty.
    pub threads: Vec<String>,
    pub search: Search,
}

/// What is asked of whoever has the samples.
pub enum Wanted {
    /// The code of the function at this index.
    Code(usize),
    /// The functions of other samples.
    Samples(Which),
}

/// Everything that runs beside the screens.
pub struct World {
    queue: Queue,
    live: Option<measure::Live>,
    functions: Sender<Wanted>,
    blocks: Sender<blocks::Job>,
    /// The block measurement that is under way.
    watched: HashMap<u64, (Watch, Instant)>,
}

/// The way back to the screens.
#[derive(Clone)]
pub struct Queue(pub Sender<Message>);

impl Queue {
    /// Hands an action over. Nobody listens any more when we are about to end.
    pub fn send(&self, action: Action) {
        let _ = self.0.send(Message::Action(action));
    }
}

impl World {
    /// Starts what `source` needs.
    pub fn start(
        source: &Source,
        library: Library,
        uarch: Option<String>,
        to: Sender<Message>,
    ) -> Self {
        let queue = Queue(to);
        let (functions, wanted) = channel();
        let (blocks, jobs) = channel();
        let options = match source {
            Source::Block(_, _, options) => Some((**options).clone()),
            _ => None,
        };
        blocks::serve(jobs, options, (library.clone(), uarch.clone()), queue.clone());
        let tables = (library, uarch);
        let live = match source {
            Source::Command(command, samples) => {
                let command = Some(command.clone());
                Some(measure::start(command, samples.clone(), tables, wanted, queue.clone()))
            }
            Source::System => {
                let samples = Samples::default();
                Some(measure::start(None, samples, tables, wanted, queue.clone()))
            }
            Source::File(path, samples) => {
                profile::serve(path.clone(), samples.clone(), tables, wanted, queue.clone());
                None
            }
            Source::Block(..) => None,
        };
        Self { queue, live, functions, blocks, watched: HashMap::new() }
    }

    /// Reads the code of a function.
    pub fn annotate(&self, index: usize) {
        if self.functions.send(Wanted::Code(index)).is_err() {
            let why = "the samples are not there any more".to_owned();
            self.queue.send(Action::NotAnnotated(index, why));
        }
    }

    /// Counts other samples.
    pub fn profile(&self, which: Which) {
        if self.functions.send(Wanted::Samples(which)).is_err() {
            self.queue.send(Action::NoFunctions("the samples are not there any more".into()));
        }
    }

    /// Writes a new file; one that is there stays as it is.
    pub fn save(&self, path: PathBuf, content: String) {
        let queue = self.queue.clone();
        // A slow disk must not hold up the keys.
        std::thread::spawn(move || {
            let file = File::options().write(true).create_new(true).open(&path);
            let written = file.and_then(|mut file| file.write_all(content.as_bytes()));
            let written = written.map_err(|e| match e.kind() {
                ErrorKind::AlreadyExists => "there is such a file; choose another name".to_owned(),
                _ => e.to_string(),
            });
            queue.send(Action::Saved(path, written));
        });
    }

    /// Measures a block.
    pub fn measure(&mut self, id: u64, bytes: Vec<u8>) {
        let watch = Watch::default();
        self.watched.insert(id, (watch.clone(), Instant::now()));
        if self.blocks.send(blocks::Job { id, bytes, watch }).is_err() {
            self.queue.send(Action::Measured(id, Err("the block profiler has ended".into())));
        }
    }

    /// Calls the measurement of a block off.
    pub fn cancel(&mut self, id: u64) {
        if let Some((watch, _)) = self.watched.remove(&id) {
            watch.cancel();
        }
    }

    /// How far a measurement is.
    pub fn progress(&self, id: u64) -> Option<Action> {
        let (watch, start) = self.watched.get(&id)?;
        Some(Action::Progress(id, start.elapsed().as_secs_f64(), watch.passes()))
    }

    /// Ends everything; the measured command's status if it has ended by itself.
    pub fn end(mut self) -> Option<u8> {
        for (watch, _) in self.watched.values() {
            watch.cancel();
        }
        self.live.take().and_then(measure::Live::end)
    }
}

/// Runs `work`; a panic in it becomes a text.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned()));
        format!("tdtool has an error: {}", text.unwrap_or_else(|| "a panic".into()))
    })
}

/// What failed, why, and what to do, in one paragraph.
fn told(error: &tma::Error) -> String {
    match error.remedy() {
        Some(remedy) => format!("{error}. Try: {remedy}"),
        None => error.to_string(),
    }
}
