//! A live measurement in a thread of its own, and its estimated top-down, in further runs.

use super::recording::{Request, serve};
use super::watch::watch;
use crate::settings::{Samples, Settings};
use crate::tui::action::BackgroundResult;
use crate::tui::alternate_screen::silence;
use crate::tui::events::{Message, Queue, ending_signals};
use crate::tui::state::{Failure, Searchable, catch_panic, paragraph};
use crate::{config, message};
use engine::commands::Carried;
use engine::estimate::{Callback, EstimateAsk, estimate};
use engine::hot::{self, Temporary};
use engine::left::cost;
use engine::record::{SampleAsk, record};
use engine::topdown::{LiveAsk, Outcome, Update, live};
use nix::sys::pthread::pthread_kill;
use nix::sys::signal::Signal;
use pmu::machine::Moment;
use pmu::{Command, Target};
use profile::files::SearchPaths;
use profile::hot::{Filter, Profile};
use profile::recording::Stream;
use report::documents::estimate::Estimate;
use report::documents::report_file::explain;
use report::documents::{Report, Source};
use report::render::json;
use std::ffi::OsString;
use std::os::unix::thread::JoinHandleExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Length of an interval.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time that the command has to end before it gets another signal.
const GRACE: Duration = Duration::from_millis(700);

/// A measurement that runs, or has ended.
pub struct Live {
    thread: JoinHandle<Option<u8>>,
    /// Requests for an estimate, which the thread waits for after the measurement.
    estimates: Sender<()>,
    /// Whether it measures or estimates.
    works: Arc<AtomicBool>,
    /// Whether the measurement of a process has been ended for an estimate.
    switched: Arc<AtomicBool>,
    is_process: bool,
}

/// Measured command, process or system.
#[derive(Debug, Clone)]
pub enum What {
    /// A command, which is also sampled.
    Command(Vec<OsString>),
    /// A running process, likewise.
    Process(i32),
    System,
}

/// Starts to measure.
pub fn start(
    what: What,
    samples: Samples,
    settings: Arc<Settings>,
    requests: Receiver<Request>,
    queue: Queue,
) -> Live {
    let (estimates, asked) = channel();
    let is_process = matches!(what, What::Process(_));
    let works = Arc::new(AtomicBool::new(true));
    let at_work = works.clone();
    let switched = Arc::new(AtomicBool::new(false));
    let for_estimate = switched.clone();
    let thread = std::thread::spawn(move || {
        let measured = interruptible(&at_work, || {
            measure(&what, &samples, requests, &settings, &for_estimate, &queue)
        });
        let (why, status) = match measured {
            Ok(Ok((outcome, recording, requests))) => {
                let status = outcome.exit.and_then(|e| u8::try_from(e.code() & 0xff).ok());
                let switched = for_estimate.swap(false, Ordering::SeqCst);
                let interrupted = outcome.interrupted.is_some() && !switched;
                let report = outcome.report;
                queue.send(BackgroundResult::Report(Box::new(report.clone())));
                if let Some(recording) = recording {
                    let recording = Arc::new(recording);
                    serve(recording.clone(), samples.clone(), requests, queue.clone());
                    let (command, process) = match what {
                        What::Command(command) => (command, None),
                        What::Process(pid) => (Vec::new(), Some(pid)),
                        What::System => return status,
                    };
                    let search = samples.search;
                    let sampled = Sampled { report, recording, search, command, process };
                    if let Some(cost) = sampled.cost().filter(|_| !interrupted) {
                        if process.is_some() && !switched {
                            let why = "the process has ended".to_owned();
                            queue.send(BackgroundResult::NotEstimated(why));
                            return status;
                        }
                        if process.is_none() {
                            queue.send(BackgroundResult::Offer(cost));
                        }
                        while asked.recv().is_ok() {
                            let done =
                                interruptible(&at_work, || sampled.estimate(&settings, &queue));
                            queue.send(match done {
                                Ok(Ok(estimate)) => {
                                    BackgroundResult::Estimated(Searchable::boxed(estimate))
                                }
                                Ok(Err(error)) => BackgroundResult::NotEstimated(paragraph(&error)),
                                Err(panic) => BackgroundResult::NotEstimated(panic.to_string()),
                            });
                        }
                    }
                }
                return status.filter(|_| !interrupted);
            }
            Ok(Err(error)) => (paragraph(&error), Some(message::status(&error))),
            Err(panic) => (panic.to_string(), None),
        };
        queue.send(BackgroundResult::NoReport(why));
        status
    });
    Live { thread, estimates, works, switched, is_process }
}

/// Runs `work`, which catches ending signals itself; a command that it starts must not inherit them blocked.
fn interruptible<T>(
    works: &AtomicBool,
    work: impl FnOnce() -> T,
) -> std::result::Result<T, Failure> {
    works.store(true, Ordering::SeqCst);
    let _ = ending_signals().thread_unblock();
    let done = catch_panic(work);
    let _ = ending_signals().thread_block();
    works.store(false, Ordering::SeqCst);
    done
}

impl Live {
    /// Asks for an estimate; `false` if the thread has ended. The measurement of a process ends first: only one can
    /// catch signals, and probes distort samples.
    pub fn estimate(&self) -> bool {
        let measures = self.is_process && self.works.load(Ordering::SeqCst);
        let is_sent = self.estimates.send(()).is_ok();
        if measures && is_sent && !self.thread.is_finished() {
            self.switched.store(true, Ordering::SeqCst);
            let _ = pthread_kill(self.thread.as_pthread_t(), Signal::SIGTERM);
        }
        self.works.store(true, Ordering::SeqCst);
        is_sent
    }

    /// Ends the measurement and the command; returns its status if it had ended before.
    pub fn end(self) -> Option<u8> {
        // Without further requests a thread that does not work ends.
        drop(self.estimates);
        for _ in 0..3 {
            if self.thread.is_finished() || !self.works.load(Ordering::SeqCst) {
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

/// Outcome of the measurement, its samples, and the requests left.
type Measured = (Outcome, Option<Stream>, Receiver<Request>);

fn measure(
    what: &What,
    samples: &Samples,
    requests: Receiver<Request>,
    settings: &Settings,
    switched: &AtomicBool,
    queue: &Queue,
) -> Result<Measured> {
    let ask = ask(what, settings)?;
    let why = match what {
        What::Command(_) | What::Process(_) => "Sampling; the first functions come in a moment.",
        What::System => {
            "The whole system is counted, not sampled, so there are no functions. `tdtool -- COMMAND` \
             samples a command, `tdtool record -a --duration S -o FILE` the system."
        }
    };
    queue.send(BackgroundResult::NoFunctions(why.into()));
    queue.send(BackgroundResult::Measuring);
    let mut explained = false;
    let explain_first = |explained: &mut bool, report: &Report| {
        if !std::mem::replace(explained, true) {
            let explanations = explain(settings.library, report);
            queue.send(BackgroundResult::Explained(Arc::new(explanations)));
        }
    };
    let on_update = &mut |update| match update {
        Update::Interval(report) => {
            if !explained && report.source == Source::NoPmu && !matches!(what, What::System) {
                let is_command = matches!(what, What::Command(_));
                queue.send(BackgroundResult::NotCounted(is_command));
                if !is_command {
                    queue.send(BackgroundResult::Offer(cost_of_process()));
                }
            }
            explain_first(&mut explained, &report);
            queue.send(BackgroundResult::Interval(report));
        }
        // The signal ended it for an estimate, not to leave.
        Update::Interrupted(_) if switched.load(Ordering::SeqCst) => {}
        Update::Interrupted(signal) => queue.message(Message::Signal(signal)),
        Update::Runs(_) => {}
    };
    let measured = match what {
        What::System => {
            (live(settings.machine(), settings.library, &ask, on_update)?, None, requests)
        }
        _ => {
            let file = Temporary::new()?;
            let path = file.path();
            let watch = watch(path.to_owned(), samples.clone(), requests, queue.clone());
            let sampled = sample(settings, &ask, path, queue, on_update);
            let requests = watch.end();
            let (outcome, recording) = sampled.map_err(|error| file.explained(error))?;
            (outcome, recording, requests)
        }
    };
    explain_first(&mut explained, &measured.0.report);
    Ok(measured)
}

/// Measures and samples, into a temporary file.
fn sample(
    settings: &Settings,
    ask: &LiveAsk,
    path: &Path,
    queue: &Queue,
    on_update: &mut dyn FnMut(Update),
) -> Result<(Outcome, Option<Stream>)> {
    let sample = SampleAsk {
        call_chains: pmu::sampling::CallChains::FramePointers,
        programs: config::kept_programs(),
        ..SampleAsk::default()
    };
    let recorded =
        record(settings.machine(), settings.library, ask, Some(&sample), path, on_update)?;
    let recording = hot::stream(path, true)?;
    if recording.is_none() {
        let mut why = "No samples were taken.".to_owned();
        let notes = recorded.notes.iter().map(ToString::to_string);
        for note in notes.chain(recorded.failed.map(|e| e.to_string())) {
            why += &format!(" {note}.");
        }
        queue.send(BackgroundResult::NoFunctions(why));
    }
    Ok((recorded.outcome, recording))
}

fn ask(what: &What, settings: &Settings) -> Result<LiveAsk> {
    let (target, command) = match what {
        What::Command(command) => (Target::Command, Some(command)),
        What::Process(pid) => (Target::Process(*pid), None),
        What::System => (Target::System, None),
    };
    let argv = command.map(|command| workload::resolve(command));
    Ok(LiveAsk {
        uarch: settings.uarch.clone(),
        target,
        command: argv.map(|argv| Command { argv, ..Command::default() }),
        typed: command.into_iter().flatten().map(|a| a.to_string_lossy().into_owned()).collect(),
        interval: Some(INTERVAL),
        ..LiveAsk::of(settings.core()?)
    })
}

/// A command and its first run.
pub struct Sampled {
    pub report: Report,
    pub recording: Arc<Stream>,
    pub search: SearchPaths,
    /// Empty of a process.
    pub command: Vec<OsString>,
    /// A live process instead.
    pub process: Option<i32>,
}

/// Each window of a live process.
const WINDOW: Duration = Duration::from_secs(1);

/// Cost of an estimate of a live process.
pub fn cost_of_process() -> String {
    engine::left::cost_of_process(WINDOW)
}

impl Sampled {
    /// Cost of its estimate; `None` where the tree was counted.
    pub fn cost(&self) -> Option<String> {
        let cost = || match self.process {
            Some(_) => cost_of_process(),
            None => cost(self.report.duration.unwrap_or(1.0)),
        };
        (self.report.source == Source::NoPmu).then(cost)
    }

    /// Estimates it; steps are sent as they begin.
    pub fn estimate(&self, settings: &Settings, queue: &Queue) -> Result<Estimate> {
        silence();
        let mut profile = Profile::new(&*self.recording, &Filter::default(), self.search.clone())?;
        let (steps, documents, evidence_queue) = (queue.clone(), queue.clone(), queue.clone());
        let carried = Carried::new(settings.uarch.as_deref(), settings.library, false);
        let of_parts = carried.clone();
        let ask = EstimateAsk {
            process: self.process.map(|pid| (pid, WINDOW)),
            command: Command { argv: workload::resolve(&self.command), ..Command::default() },
            model: settings.core_model()?,
            progress: Callback::new(move |step| {
                steps.send(BackgroundResult::Estimating(step));
            }),
            so_far: Some(Callback::new(move |mut document| {
                of_parts.enter_estimate(&mut document);
                documents.send(BackgroundResult::EstimatedSoFar(Searchable::boxed(document)));
            })),
            keep: Some(Callback::new(move |evidence| {
                if let Ok(line) = json::line(&evidence) {
                    evidence_queue.send(BackgroundResult::Evidence(line));
                }
            })),
            budget: None,
            since: Some(Moment::now()),
        };
        match estimate(&self.report, &mut profile, &ask)? {
            (mut document, None) => {
                carried.enter_estimate(&mut document);
                Ok(document)
            }
            (_, Some(_)) => {
                Err(Error::failed("no estimated top-down").because("it was interrupted"))
            }
        }
    }
}
