//! A live measurement, in a thread of its own.

use super::explain::explain;
use super::profile::serve_recording;
use super::{Queue, Samples, Wanted, caught, told};
use crate::tui::action::Action;
use crate::tui::events::{Message, ending};
use engine::documents::Report;
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
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tma::Error;
use tma::tables::Library;

/// Length of an interval.
const INTERVAL: Duration = Duration::from_millis(500);
/// So long the command has to end when we do, before it is told again.
const PATIENCE: Duration = Duration::from_millis(700);

/// A measurement that runs, or has ended.
pub struct Live {
    thread: JoinHandle<Option<u8>>,
}

/// Starts to measure a command, which is sampled, too, or the whole system.
pub fn start(
    command: Option<Vec<OsString>>,
    samples: Samples,
    tables: (Library, Option<String>),
    wanted: Receiver<Wanted>,
    queue: Queue,
) -> Live {
    let thread = std::thread::spawn(move || {
        // The collector catches the ending signals itself, and the command must not inherit them
        // blocked.
        let _ = ending().thread_unblock();
        let measured = caught(|| measure(command, tables, &queue));
        let _ = ending().thread_block();
        let why = match measured {
            Ok(Ok((outcome, recording))) => {
                queue.send(Action::Report(Box::new(outcome.report)));
                if let Some(recording) = recording {
                    serve_recording(recording, samples, wanted, queue);
                }
                let status = outcome.exit.and_then(|e| u8::try_from(e.code() & 0xff).ok());
                return status.filter(|_| outcome.interrupted.is_none());
            }
            Ok(Err(error)) => {
                queue.send(Action::NoReport(told(&error)));
                return Some(crate::failure::status(&error));
            }
            Err(why) => why,
        };
        queue.send(Action::NoReport(why));
        None
    });
    Live { thread }
}

impl Live {
    /// Ends the measurement and the command, and returns its status if it had ended by itself.
    pub fn end(self) -> Option<u8> {
        for _ in 0..3 {
            if self.thread.is_finished() {
                return self.thread.join().ok().flatten();
            }
            // The collector hands it on to the command; the second one ends what ignores it.
            let _ = pthread_kill(self.thread.as_pthread_t(), Signal::SIGTERM);
            let start = Instant::now();
            while start.elapsed() < PATIENCE && !self.thread.is_finished() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        None
    }
}

/// What was measured, and the samples taken of it.
type Measured = (Outcome, Option<Recording>);

fn measure(
    command: Option<Vec<OsString>>,
    (library, uarch): (Library, Option<String>),
    queue: &Queue,
) -> tma::Result<Measured> {
    let machine = Machine::detect();
    let is_command = command.is_some();
    let ask = ask(command, uarch);
    let why = match is_command {
        true => "Samples are being taken; the functions come when the command has ended.",
        false => {
            "No functions: the whole system is only counted. `tdtool -- COMMAND` samples a command, \
             and `tdtool record -a --duration S -o FILE` the system."
        }
    };
    queue.send(Action::NoFunctions(why.into()));
    queue.send(Action::Measuring);
    let mut explained = false;
    let mut first = |report: &Report| {
        if !std::mem::replace(&mut explained, true) {
            queue.send(Action::Explained(explain(&library, report)));
        }
    };
    let told = &mut |update| match update {
        Update::Interval(report) => {
            first(&report);
            queue.send(Action::Interval(report));
        }
        Update::Interrupted(signal) => {
            let _ = queue.0.send(Message::Signal(signal));
        }
        Update::Runs(_) => {}
    };
    let measured = match is_command {
        true => sampled(&machine, &library, &ask, queue, told)?,
        false => (live(&machine, &library, &ask, told)?, None),
    };
    first(&measured.0.report);
    Ok(measured)
}

/// Measures and samples; the samples lie in a temporary file meanwhile.
fn sampled(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
    queue: &Queue,
    told: &mut dyn FnMut(Update),
) -> tma::Result<Measured> {
    let folder = Temporary::new()?;
    let path = folder.0.join("session");
    let recorded = record(machine, library, ask, Some(&SampleAsk::default()), &path, told)?;
    let recording = recording::open(&path)?;
    if recording.is_none() {
        let mut why = "No samples were taken.".to_owned();
        for note in recorded.notes.into_iter().chain(recorded.failed.map(|e| e.to_string())) {
            why += &format!(" {note}.");
        }
        queue.send(Action::NoFunctions(why));
    }
    Ok((recorded.outcome, recording))
}

/// A folder that is gone when it is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> tma::Result<Self> {
        let template = std::env::temp_dir().join("tdtool-XXXXXX");
        nix::unistd::mkdtemp(&template).map(Self).map_err(|e| {
            Error::failed(format!("cannot make a folder in {}", std::env::temp_dir().display()))
                .because(e)
                .hint("set TMPDIR to a folder with room")
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ask(command: Option<Vec<OsString>>, uarch: Option<String>) -> LiveAsk {
    let argv = command.as_deref().map(workload::resolve);
    LiveAsk {
        ask: Ask { level: None, nodes: None, bottlenecks: false },
        uarch,
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
    }
}
