//! A live measurement, in a thread of its own.

use super::failure::{catch_panic, paragraph};
use super::queue::Queue;
use super::recording::serve;
use super::request::Request;
use crate::message;
use crate::settings::Settings;
use crate::subject::Samples;
use crate::tui::action::BackgroundResult;
use crate::tui::events::{Message, ending_signals};
use engine::documents::Report;
use engine::documents::explanations::explain;
use engine::hot::recording;
use engine::record::{SampleAsk, record};
use engine::topdown::{Ask, LiveAsk, Outcome, Update, live};
use nix::sys::pthread::pthread_kill;
use nix::sys::signal::Signal;
use pmu::machine::Machine;
use pmu::{Aggregate, Command, Target};
use profile::recording::Recording;
use std::ffi::OsString;
use std::os::unix::thread::JoinHandleExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tma::Error;

/// Length of an interval.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time that the command has to end before it gets another signal.
const GRACE: Duration = Duration::from_millis(700);

/// A measurement that runs, or has ended.
pub struct Live {
    thread: JoinHandle<Option<u8>>,
}

/// Starts to measure the whole system, or a command, which is also sampled.
pub fn start(
    command: Option<Vec<OsString>>,
    samples: Samples,
    settings: Arc<Settings>,
    requests: Receiver<Request>,
    queue: Queue,
) -> Live {
    let thread = std::thread::spawn(move || {
        // The collector catches these signals itself, and the command must not inherit them blocked.
        let _ = ending_signals().thread_unblock();
        let measured = catch_panic(|| measure(command, &settings, &queue));
        let _ = ending_signals().thread_block();
        let (why, status) = match measured {
            Ok(Ok((outcome, recording))) => {
                let status = outcome.exit.and_then(|e| u8::try_from(e.code() & 0xff).ok());
                let interrupted = outcome.interrupted.is_some();
                queue.send(BackgroundResult::Report(Box::new(outcome.report)));
                if let Some(recording) = recording {
                    serve(recording, samples, requests, queue);
                }
                return status.filter(|_| !interrupted);
            }
            Ok(Err(error)) => (paragraph(&error), Some(message::status(&error))),
            Err(panic) => (panic, None),
        };
        queue.send(BackgroundResult::NoReport(why));
        status
    });
    Live { thread }
}

impl Live {
    /// Ends the measurement and the command; returns its status if it had ended before.
    pub fn end(self) -> Option<u8> {
        for _ in 0..3 {
            if self.thread.is_finished() {
                return self.thread.join().ok().flatten();
            }
            // The collector passes it on to the command; the second one kills a command that ignores it.
            let _ = pthread_kill(self.thread.as_pthread_t(), Signal::SIGTERM);
            let start = Instant::now();
            while start.elapsed() < GRACE && !self.thread.is_finished() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        None
    }
}

/// What was measured, and the samples taken.
type Measured = (Outcome, Option<Recording>);

fn measure(
    command: Option<Vec<OsString>>,
    settings: &Settings,
    queue: &Queue,
) -> tma::Result<Measured> {
    let machine = settings.machine();
    let is_command = command.is_some();
    let ask = ask(command, settings)?;
    let why = match is_command {
        true => "Sampling; the functions are shown when the command has ended.",
        false => {
            "The whole system is counted, not sampled, so there are no functions. `tdtool -- COMMAND` \
             samples a command, `tdtool record -a --duration S -o FILE` the system."
        }
    };
    queue.send(BackgroundResult::NoFunctions(why.into()));
    queue.send(BackgroundResult::Measuring);
    let mut explained = false;
    let mut explain_first = |report: &Report| {
        if !std::mem::replace(&mut explained, true) {
            let explanations = explain(settings.library, report);
            queue.send(BackgroundResult::Explained(Arc::new(explanations)));
        }
    };
    let on_update = &mut |update| match update {
        Update::Interval(report) => {
            explain_first(&report);
            queue.send(BackgroundResult::Interval(report));
        }
        Update::Interrupted(signal) => queue.message(Message::Signal(signal)),
        Update::Runs(_) => {}
    };
    let measured = match is_command {
        true => sample(machine, settings, &ask, queue, on_update)?,
        false => (live(machine, settings.library, &ask, on_update)?, None),
    };
    explain_first(&measured.0.report);
    Ok(measured)
}

/// Measures and samples, into a temporary file.
fn sample(
    machine: &Machine,
    settings: &Settings,
    ask: &LiveAsk,
    queue: &Queue,
    on_update: &mut dyn FnMut(Update),
) -> tma::Result<Measured> {
    let folder = TemporaryFolder::new()?;
    let path = folder.0.join("session");
    let sample = SampleAsk::default();
    let recorded = record(machine, settings.library, ask, Some(&sample), &path, on_update)?;
    let recording = recording::open(&path)?;
    if recording.is_none() {
        let mut why = "No samples were taken.".to_owned();
        for note in recorded.notes.into_iter().chain(recorded.failed.map(|e| e.to_string())) {
            why += &format!(" {note}.");
        }
        queue.send(BackgroundResult::NoFunctions(why));
    }
    Ok((recorded.outcome, recording))
}

/// A folder that is removed when this is dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> tma::Result<Self> {
        let template = std::env::temp_dir().join("tdtool-XXXXXX");
        nix::unistd::mkdtemp(&template).map(Self).map_err(|e| {
            Error::failed(format!("cannot make a folder in {}", std::env::temp_dir().display()))
                .because(e)
                .hint("set TMPDIR to a folder with free space")
        })
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ask(command: Option<Vec<OsString>>, settings: &Settings) -> tma::Result<LiveAsk> {
    let argv = command.as_deref().map(workload::resolve);
    Ok(LiveAsk {
        ask: Ask { level: None, nodes: None, bottlenecks: false },
        uarch: settings.uarch.clone(),
        core: settings.core()?,
        target: if command.is_some() { Target::Command } else { Target::System },
        command: argv.map(|argv| Command { argv, stdout_to_stderr: false }),
        typed: command.iter().flatten().map(|a| a.to_string_lossy().into_owned()).collect(),
        aggregate: Aggregate::All,
        inherit: true,
        user_only: false,
        multiplex: true,
        drilldown: false,
        repeats: 1,
        delay: Duration::ZERO,
        duration: None,
        interval: Some(INTERVAL),
        require_pmu: false,
    })
}
