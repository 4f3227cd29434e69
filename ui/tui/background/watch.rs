//! The functions of a measurement that still runs, from the part of the session that is written.

use super::recording::{Request, annotate, calls_of, profile_of};
use crate::settings::Samples;
use crate::tui::action::BackgroundResult;
use crate::tui::events::Queue;
use crate::tui::state::{Failure, SampleFilter, Searchable, WITH_LINES, catch_panic};
use engine::hot;
use profile::hot::{HotFunction, Profile};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two looks; a look that takes longer makes the next pause so many times as long, as it takes time
/// from the measured program.
const PAUSE: Duration = Duration::from_secs(1);
const REST: u32 = 4;
/// Time until the end of the measurement is noticed.
const NOTICE: Duration = Duration::from_millis(50);

/// A thread that looks.
pub struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Receiver<Request>>,
}

/// Looks at the session in `path` as it grows, and answers requests.
pub fn watch(path: PathBuf, samples: Samples, requests: Receiver<Request>, queue: Queue) -> Watch {
    let (stop, stopped) = channel();
    let thread = std::thread::spawn(move || {
        let filter = SampleFilter { threads: samples.threads.clone(), ..SampleFilter::default() };
        let mut watched =
            Watched { path, samples, filter, queue, profile: None, lines: HashMap::new() };
        let mut next = Instant::now() + PAUSE;
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            match requests.recv_timeout(NOTICE) {
                Ok(Request::Code(index)) => watched.code(index),
                Ok(Request::Calls(name)) => watched.calls(name),
                Ok(Request::Functions(filter)) => watched.filter = filter,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() >= next {
                let start = Instant::now();
                // A failed read may succeed at the next look.
                let _ = catch_panic(|| watched.look());
                next = Instant::now() + PAUSE.max(start.elapsed() * REST);
            }
        }
        requests
    });
    Watch { stop, thread }
}

impl Watch {
    /// The measurement has ended: the requests are somebody else's.
    pub fn end(self) -> Receiver<Request> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| channel().1)
    }
}

struct Watched {
    path: PathBuf,
    samples: Samples,
    filter: SampleFilter,
    queue: Queue,
    profile: Option<Profile>,
    /// Lines of functions that were found so far.
    lines: HashMap<Key, (Option<String>, Option<u32>)>,
}

/// Module and beginning of a function.
type Key = (String, u64);

fn key(function: &HotFunction) -> Key {
    (function.module.clone(), function.start)
}

impl Watched {
    fn look(&mut self) {
        let path: &Path = &self.path;
        let Ok(Some(recording)) = hot::growing(path) else { return };
        let Ok(mut profile) = profile_of(&recording, &self.filter, &self.samples) else { return };
        if profile.samples > 0 {
            let is_new = self.send(&profile);
            if is_new {
                // They take longer, so that the numbers come first.
                profile.find_lines(WITH_LINES);
                let lines = profile.functions.iter().take(WITH_LINES);
                self.lines.extend(lines.map(|f| (key(f), (f.file.clone(), f.line))));
                self.send(&profile);
            }
            self.profile = Some(profile);
        }
    }

    /// Sends the functions with the lines that are known; whether some of the hottest are not.
    fn send(&self, profile: &Profile) -> bool {
        let mut shown = (**profile).clone();
        let mut is_new = false;
        for (number, function) in shown.functions.iter_mut().enumerate() {
            match self.lines.get(&key(function)) {
                Some((file, line)) => (function.file, function.line) = (file.clone(), *line),
                None => is_new |= number < WITH_LINES,
            }
        }
        self.queue.send(BackgroundResult::Functions(Searchable::boxed(shown)));
        is_new
    }

    fn calls(&self, name: String) {
        let recording = catch_panic(|| hot::stream(&self.path, true));
        let found = recording.and_then(|read| read.ok().flatten().ok_or(Failure::NotYet));
        let found = found.and_then(|recording| {
            calls_of(&recording, &self.filter, &self.samples, &mut None, &name)
        });
        self.queue.send(BackgroundResult::Calls(name, found.map(Box::new)));
    }

    fn code(&mut self, index: usize) {
        if let Some(profile) = &mut self.profile {
            self.queue.send(annotate(profile, index));
        }
    }
}
