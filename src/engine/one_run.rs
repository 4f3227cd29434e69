//! A command that runs once and is measured as a live process, in windows: as it serves others, or cannot run again.

use crate::hot::hottest::AGAIN;
use crate::processes::descendants;
use crate::topdown::LiveAsk;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::{Child, HeldSignals};
use pmu::{Exit, Target};
use report::format::seconds;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Time between SIGTERM and SIGKILL, and between looks.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);

/// The command; it is ended when this is dropped.
pub struct OneRun {
    child: Child,
    begin: Instant,
    /// A signal between measurements must not leave the command behind.
    signals: Option<HeldSignals>,
}

impl OneRun {
    /// Starts the command of `ask`, whose target is its process from then on; `None` without a command.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(ask: &mut LiveAsk) -> Result<Option<Self>> {
        let Some(mut command) = ask.command.take_if(|_| ask.target == Target::Command) else {
            return Ok(None);
        };
        // It runs once: nothing is kept for another run.
        command.stdin = None;
        let signals = Some(HeldSignals::start()?);
        let mut child = Child::prepare(&command)?;
        child.start()?;
        ask.target = Target::Process(child.pid);
        Ok(Some(Self { child, begin: Instant::now(), signals }))
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.child.has_ended()
    }

    /// Why it was not measured: the error, or that it has ended.
    pub fn explained(&self, error: Error) -> Error {
        if !self.child.has_ended() {
            return error;
        }
        let within = seconds(self.begin.elapsed().as_secs_f64());
        Error::failed(format!("the command ended within {within}, before it was measured"))
            .because(error.to_string())
            .hint(AGAIN)
    }

    /// Ends it. Its exit, if it had ended before; the signal that came after the last measurement.
    pub fn end(mut self) -> (Option<Exit>, Option<i32>) {
        let ended = self.child.has_ended().then(|| self.child.reap());
        self.stop();
        let signal = self.signals.take().and_then(HeldSignals::end);
        (ended.flatten().map(|(exit, _)| exit), signal)
    }

    fn stop(&mut self) {
        let pid = Pid::from_raw(self.child.pid);
        let begin = Instant::now();
        // Workers may outlive the process that started them.
        let children =
            if self.child.has_ended() { Vec::new() } else { descendants(self.child.pid) };
        // Not reaped: the number is still its own.
        let mut signal = Signal::SIGTERM;
        // A process that may not be ended, such as one of sudo, is left.
        while !self.child.has_ended() && begin.elapsed() < 2 * GRACE {
            let is_due = signal == Signal::SIGTERM || begin.elapsed() > GRACE;
            if is_due && kill(pid, signal).is_ok() {
                for child in &children {
                    // It may have ended.
                    let _ = kill(Pid::from_raw(*child), signal);
                }
                signal = Signal::SIGKILL;
            }
            std::thread::sleep(POLL);
        }
        if self.child.has_ended() {
            self.child.reap();
        }
    }
}

impl Drop for OneRun {
    fn drop(&mut self) {
        self.stop();
    }
}
