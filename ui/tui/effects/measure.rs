//! A live measurement, in a thread of its own.

use super::explain::explain;
use super::{Queue, caught, told};
use crate::tui::action::Action;
use crate::tui::events::{Message, ending};
use nix::sys::pthread::pthread_kill;
use nix::sys::signal::Signal;
use std::ffi::OsString;
use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tdtool::analysis::{Ask, LiveAsk, Outcome, Update, live};
use tdtool::collect::{Aggregate, Command, Target};
use tdtool::machine::Machine;
use tdtool::tables::Library;

/// Length of an interval.
const INTERVAL: Duration = Duration::from_millis(500);
/// So long the command has to end when we do, before it is told again.
const PATIENCE: Duration = Duration::from_millis(700);

/// A measurement that runs, or has ended.
pub struct Live {
    thread: JoinHandle<Option<u8>>,
}

/// Starts to measure a command, or the whole system.
pub fn start(
    command: Option<Vec<OsString>>,
    library: Library,
    uarch: Option<String>,
    queue: Queue,
) -> Live {
    let thread = std::thread::spawn(move || {
        // The collector catches the ending signals itself, and the command must not inherit them
        // blocked.
        let _ = ending().thread_unblock();
        let outcome = caught(|| measure(command, &library, uarch, &queue));
        let _ = ending().thread_block();
        match outcome {
            Ok(Ok(outcome)) => {
                let status = outcome.exit.and_then(|e| u8::try_from(e.code() & 0xff).ok());
                queue.send(Action::Report(Box::new(outcome.report)));
                status.filter(|_| outcome.interrupted.is_none())
            }
            Ok(Err(error)) => {
                queue.send(Action::NoReport(told(&error)));
                None
            }
            Err(why) => {
                queue.send(Action::NoReport(why));
                None
            }
        }
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

fn measure(
    command: Option<Vec<OsString>>,
    library: &Library,
    uarch: Option<String>,
    queue: &Queue,
) -> tdtool::Result<Outcome> {
    let machine = Machine::detect();
    let argv = command.as_deref().map(tdtool::workload::resolve);
    let typed = command.iter().flatten().map(|a| a.to_string_lossy().into_owned()).collect();
    let ask = LiveAsk {
        ask: Ask { level: None, nodes: None, bottlenecks: false },
        uarch,
        target: if command.is_some() { Target::Command } else { Target::System },
        command: argv.map(|argv| Command { argv, stdout_to_stderr: false }),
        typed,
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
    };
    queue.send(Action::NoFunctions(
        "No functions: samples are not taken while a measurement is shown live. `tdtool record -o \
         FILE -- COMMAND` takes them, and `tdtool FILE` shows them."
            .into(),
    ));
    queue.send(Action::Measuring);
    let mut explained = false;
    let mut first = |report: &tdtool::report::Report| {
        if !std::mem::replace(&mut explained, true) {
            queue.send(Action::Explained(explain(library, report)));
        }
    };
    let outcome = live(&machine, library, &ask, &mut |update| match update {
        Update::Interval(report) => {
            first(&report);
            queue.send(Action::Interval(report));
        }
        Update::Interrupted(signal) => {
            let _ = queue.0.send(Message::Signal(signal));
        }
        Update::Runs(_) => {}
    })?;
    first(&outcome.report);
    Ok(outcome)
}
