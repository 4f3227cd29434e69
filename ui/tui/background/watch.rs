//! The functions of a measurement that still runs, from the part of the session that is written.

use super::failure::catch_panic;
use super::queue::Queue;
use super::recording::{annotate, calls_of, profile_of};
use super::request::Request;
use crate::subject::Samples;
use crate::tui::action::BackgroundResult;
use crate::tui::state::SampleFilter;
use engine::hot::recording;
use profile::hot::Profile;
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
        let mut watched = Watched { path, samples, filter, queue, profile: None };
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
                // What cannot be read now may be at the next look.
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
}

impl Watched {
    fn look(&mut self) {
        let path: &Path = &self.path;
        let Ok(Some(recording)) = recording::stream(path, false) else { return };
        let Ok(mut profile) = profile_of(&recording, &self.filter, &self.samples) else { return };
        // It is not at its end yet.
        profile.keep_notes(|note| !note.starts_with("the recording was stopped"));
        if profile.samples > 0 {
            self.queue.send(BackgroundResult::Functions(Box::new((*profile).clone())));
            self.profile = Some(profile);
        }
    }

    fn calls(&self, name: String) {
        let why = || "The samples cannot be read yet.".to_owned();
        let recording = catch_panic(|| recording::stream(&self.path, true));
        let found = recording.and_then(|read| read.ok().flatten().ok_or_else(why));
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
