//! Stops the other threads of a process, and steps one stopped thread.

use super::breakpoints::{self, Kind};
use super::thread::{self, Trap};
use super::traced::{Handled, Traced};
use nix::sys::ptrace;
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
        if self.kind == Kind::Int3 || breakpoints::set(tid, task, addresses).is_err() {
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
}
