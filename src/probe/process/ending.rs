//! The end of tracing: the command is killed, or continues untraced.

use super::task::Task;
use super::traced::Traced;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::Exit;
use pmu::perf::{Resume, Stop, stop};
use std::time::{Duration, Instant};

/// Time limit for killed processes to end.
const ENDING: Duration = Duration::from_secs(2);

impl Traced {
    /// Kills the command and all that it has started.
    pub fn kill(mut self) {
        for id in self.processes.keys() {
            let _ = kill(Pid::from_raw(*id), Signal::SIGKILL);
        }
        let begin = Instant::now();
        while !self.tasks.is_empty() && begin.elapsed() < ENDING {
            for tid in self.tasks.keys().copied().collect::<Vec<_>>() {
                match stop(tid, self.child.pid) {
                    Some(Stop::Ended) => drop(self.tasks.remove(&tid)),
                    Some(Stop::Created(child)) => {
                        let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
                        self.tasks.insert(child, Task::new(child));
                    }
                    _ if tid == self.child.pid && self.child.has_ended() => {
                        self.tasks.remove(&tid);
                    }
                    _ => {}
                }
            }
            std::thread::yield_now();
        }
        self.child.reap();
    }

    /// Lets the command continue untraced to its end.
    pub fn release(mut self) -> Option<Exit> {
        for tid in self.tasks.keys().copied().collect::<Vec<_>>() {
            if self.tasks.get(&tid).is_none_or(|task| task.stopped.is_none()) {
                self.halt(tid);
            }
            let how = self.tasks.get(&tid).and_then(|task| task.stopped);
            self.disarm(tid);
            let signal = match how {
                Some(Resume::Continue(signal)) => Signal::try_from(signal).ok(),
                _ => None,
            };
            let _ = ptrace::detach(Pid::from_raw(tid), signal);
        }
        self.exit()
    }

    /// Exit of the command.
    pub fn exit(mut self) -> Option<Exit> {
        self.child.reap().map(|(exit, _)| exit)
    }
}
