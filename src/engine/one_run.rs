//! A command that runs once and is measured as a live process, in windows: as it serves others, or cannot run again.

use crate::processes::descendants;
use crate::topdown::LiveAsk;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::Child;
use pmu::{Exit, Target};
use std::time::{Duration, Instant};
use tma::Result;

/// Time between SIGTERM and SIGKILL, and between looks.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);

/// The command; it is ended when this is dropped.
pub struct OneRun(Child);

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
        let mut child = Child::prepare(&command)?;
        child.start()?;
        ask.target = Target::Process(child.pid);
        Ok(Some(Self(child)))
    }

    /// Ends it. Its exit, if it had ended before.
    pub fn end(mut self) -> Option<Exit> {
        let ended = self.0.has_ended().then(|| self.0.reap());
        ended.flatten().map(|(exit, _)| exit)
    }
}

impl Drop for OneRun {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.pid);
        let begin = Instant::now();
        // Workers may outlive the process that started them.
        let children = if self.0.has_ended() { Vec::new() } else { descendants(self.0.pid) };
        // Not reaped: the number is still its own.
        let mut signal = Signal::SIGTERM;
        // A process that may not be ended, such as one of sudo, is left.
        while !self.0.has_ended() && begin.elapsed() < 2 * GRACE {
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
        if self.0.has_ended() {
            self.0.reap();
        }
    }
}
