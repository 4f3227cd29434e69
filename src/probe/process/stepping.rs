//! Stops the other threads of a process, steps one stopped thread, and resumes threads with their breakpoints and
//! deferred signals.

use super::thread::{self, Kind, Trap};
use super::traced::{Handled, Traced};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::{Resume, Stop, resume, stop};
use std::time::{Duration, Instant};

/// Time limit for a thread to stop; in vfork(2) it does not before its child executes a program.
const STOPPING: Duration = Duration::from_millis(100);
/// Most other stops during a step.
const MOST_RETRIES: u32 = 8;

/// Outcome of a step or a run to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stepped {
    Done,
    /// Another stop came first.
    Retry,
    Failed,
}

impl Traced {
    /// Resumes a thread that has stopped at the block.
    pub fn pass(&mut self, tid: i32) {
        let Some((_, block)) = self.place(tid) else { return };
        if thread::registers(tid).is_ok_and(|r| r.pointer == block) {
            match self.kind {
                Kind::Debug => drop(thread::skip_breakpoint(tid)),
                Kind::Int3 => self.step_over(tid),
            }
        }
        let how = self.tasks.get(&tid).and_then(|task| task.stopped);
        self.go(tid, how.unwrap_or(Resume::Continue(0)));
    }

    /// Executes the instruction under an `int3` while the other threads are stopped.
    pub(super) fn step_over(&mut self, tid: i32) {
        self.halt(tid);
        self.disarm(tid);
        self.step(tid, STOPPING);
        self.arm(tid);
        self.unhalt(tid);
    }

    /// Stops the other threads of the process of `tid`; their number, and whether all stopped.
    pub fn halt(&mut self, tid: i32) -> (usize, bool) {
        let Some(id) = self.tasks.get(&tid).map(|task| task.process) else { return (0, true) };
        let begin = Instant::now();
        loop {
            let running = self.running(|task| task.process == id);
            if running.is_empty() || begin.elapsed() > STOPPING {
                let all = self.tasks.values().filter(|task| task.process == id).count();
                return (all.saturating_sub(1), running.is_empty());
            }
            for other in running {
                self.interrupt(other);
                if let Some(stop) = stop(other, self.child.pid)
                    && self.handle(other, stop) == Handled::Hit
                {
                    self.hits.push_back(other);
                }
            }
            std::thread::yield_now();
        }
    }

    /// Resumes the other threads of the process of `tid`, except those at the block.
    pub fn unhalt(&mut self, tid: i32) {
        let Some(id) = self.tasks.get(&tid).map(|task| task.process) else { return };
        let mut resumed = Vec::new();
        for (other, task) in &self.tasks {
            let stays = *other == tid || task.process != id || self.hits.contains(other);
            resumed.extend(task.stopped.filter(|_| !stays).map(|how| (*other, how)));
        }
        resumed.into_iter().for_each(|(other, how)| self.go(other, how));
    }

    /// Executes one instruction of a stopped thread without breakpoints; false if it has ended or
    /// takes longer than `most`. Signals are deferred until the thread continues.
    pub fn step(&mut self, tid: i32, most: Duration) -> bool {
        for _ in 0..MOST_RETRIES {
            if ptrace::step(Pid::from_raw(tid), None).is_err() {
                return false;
            }
            match self.stepped(tid, most) {
                Stepped::Done => return true,
                Stepped::Retry => {}
                Stepped::Failed => return false,
            }
        }
        false
    }

    /// Runs a thread without breakpoints to one of these addresses; whether it stopped there within
    /// `most`. Needs debug registers.
    pub fn run_to(&mut self, tid: i32, addresses: [Option<u64>; 4], most: Duration) -> bool {
        let Some(task) = self.tasks.get_mut(&tid) else { return false };
        if self.kind == Kind::Int3 || thread::set(tid, task, addresses).is_err() {
            return false;
        }
        let is_there =
            || thread::registers(tid).is_ok_and(|r| addresses.contains(&Some(r.pointer)));
        if is_there() && thread::skip_breakpoint(tid).is_err() {
            return false;
        }
        let mut done = Stepped::Retry;
        for _ in 0..MOST_RETRIES {
            if done != Stepped::Retry {
                break;
            }
            resume(tid, Resume::Continue(0));
            done = self.stepped(tid, most);
        }
        done == Stepped::Done && is_there()
    }

    /// Waits for the stop of a stepped or resumed thread.
    fn stepped(&mut self, tid: i32, most: Duration) -> Stepped {
        let (begin, mut interrupted) = (Instant::now(), false);
        let stop = loop {
            if let Some(stop) = stop(tid, self.child.pid) {
                break stop;
            }
            if tid == self.child.pid && self.child.has_ended() {
                self.tasks.remove(&tid);
                return Stepped::Failed;
            }
            let waited = begin.elapsed();
            if waited > most && !interrupted {
                interrupted = ptrace::interrupt(Pid::from_raw(tid)).is_ok();
            }
            if waited > most + STOPPING {
                return Stepped::Failed;
            }
            std::thread::yield_now();
        };
        if stop == Stop::Signal(libc::SIGTRAP) && thread::trap(tid) == Trap::Debug {
            return Stepped::Done;
        }
        let handled = self.handle(tid, stop);
        let Some(task) = self.tasks.get_mut(&tid) else { return Stepped::Failed };
        match (handled, stop) {
            (Handled::Resume(Resume::Continue(signal)), Stop::Signal(_)) if signal != 0 => {
                if task.deferred.is_some() {
                    return Stepped::Failed;
                }
                task.deferred = Some(signal);
                task.stopped = Some(Resume::Continue(0));
                Stepped::Retry
            }
            (_, Stop::Created(_) | Stop::SystemCall) => Stepped::Retry,
            (_, Stop::Attached) if !interrupted => Stepped::Retry,
            _ => Stepped::Failed,
        }
    }

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
            match thread::set(tid, task, stops) {
                Ok(()) | Err(Errno::ESRCH) => return,
                Err(_) => self.kind = Kind::Int3,
            }
        }
        // In a process that cannot be written, the block is never reached.
        let _ = thread::patch(task.process, process, &Vec::from_iter(stops.into_iter().flatten()));
    }

    /// Writes `int3` at these addresses of a process, whose threads are all stopped, until
    /// [`Traced::disarm`]. When one is reached, [`Traced::run_to`] returns false.
    pub fn plant(&mut self, tid: i32, addresses: &[u64]) -> bool {
        let Some(task) = self.tasks.get(&tid) else { return false };
        let Some(process) = self.processes.get_mut(&task.process) else { return false };
        thread::patch(task.process, process, addresses).is_ok()
    }

    /// Removes the breakpoints of a stopped thread, whose process is stopped.
    pub fn disarm(&mut self, tid: i32) {
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        let _ = thread::set(tid, task, [None; 4]);
        if let Some(process) = self.processes.get_mut(&task.process) {
            let _ = thread::patch(task.process, process, &[]);
        }
    }
}
