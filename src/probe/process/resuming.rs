//! Resumes traced threads with their breakpoints and deferred signals.

use super::breakpoints::{self, Kind};
use super::traced::Traced;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::{Resume, resume};

impl Traced {
    pub(super) fn interrupt(&mut self, tid: i32) {
        if let Some(task) = self.tasks.get_mut(&tid)
            && !task.interrupted
        {
            task.interrupted = ptrace::interrupt(Pid::from_raw(tid)).is_ok();
        }
    }

    /// Sets the breakpoints of a stopped thread, and resumes it.
    pub(super) fn go(&mut self, tid: i32, how: Resume) {
        self.arm(tid);
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        task.stopped = None;
        let how = match (task.deferred.take(), how) {
            (Some(signal), Resume::Continue(0)) => Resume::Continue(signal),
            (Some(signal), _) => {
                // Only one signal can be delivered unchanged.
                if let Ok(signal) = Signal::try_from(signal) {
                    let _ = kill(Pid::from_raw(task.process), signal);
                }
                how
            }
            (None, _) => how,
        };
        let traces_calls = self.processes.get(&task.process).is_some_and(|p| p.calls > 0);
        resume(
            tid,
            match how {
                Resume::Continue(signal) if traces_calls => Resume::ToSystemCall(signal),
                other => other,
            },
        );
    }

    pub(super) fn arm(&mut self, tid: i32) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let Some(process) = self.processes.get_mut(&task.process) else { return };
        let stops = process.stops();
        if self.kind == Kind::Debug {
            match breakpoints::set(tid, task, stops) {
                Ok(()) | Err(Errno::ESRCH) => return,
                Err(_) => self.kind = Kind::Int3,
            }
        }
        // In a process that cannot be written, the block is never reached.
        let _ =
            breakpoints::patch(task.process, process, &Vec::from_iter(stops.into_iter().flatten()));
    }

    /// Writes `int3` at these addresses of a process, whose threads are all stopped, until
    /// [`Traced::disarm`]. When one is reached, [`Traced::run_to`] returns false.
    pub fn plant(&mut self, tid: i32, addresses: &[u64]) -> bool {
        let Some(task) = self.tasks.get(&tid) else { return false };
        let Some(process) = self.processes.get_mut(&task.process) else { return false };
        breakpoints::patch(task.process, process, addresses).is_ok()
    }

    /// Removes the breakpoints of a stopped thread, whose process is stopped.
    pub fn disarm(&mut self, tid: i32) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let _ = breakpoints::set(tid, task, [None; 4]);
        if let Some(process) = self.processes.get_mut(&task.process) {
            let _ = breakpoints::patch(task.process, process, &[]);
        }
    }
}
