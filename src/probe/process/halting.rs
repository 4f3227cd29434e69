//! Stops and resumes all threads of a live process together.

use super::followed::{Follower, Following, rest};
use super::living::{has_ended, pointer, state};
use super::memory::Memory;
use super::obstacle::Obstacle;
use super::signals::may_restart;
use super::tracee::Tracee;
use nix::sys::ptrace;
use nix::unistd::Pid;
use pmu::perf::{Resume, Stop, resume, stop};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time limit for a thread that waits in the kernel to stop after all others.
const GRACE: Duration = Duration::from_millis(10);

/// Changes of a watched process, in addition to reactions to its events.
pub trait Watcher: Follower {
    /// All threads are stopped for the first time: whether the process is as analysed.
    fn is_current(&self, tracee: &Tracee) -> bool;
    /// All threads are stopped: maps memory that can be filled while the process runs; false if it
    /// is little.
    fn reserve(&mut self, tracee: &Tracee) -> bool;
    /// Fills reserved memory for at most `most`; whether it is complete.
    fn fill(&mut self, most: Duration) -> bool;
    /// Whether code may be changed while a thread in the kernel will return to this address.
    fn may_return(&self, address: u64) -> bool;
    /// A thread is stopped, and the code will not be changed: unmaps reserved memory; the number of
    /// mappings that remain.
    fn release(&mut self, tracee: &Tracee) -> usize;
    /// All threads are stopped for the last time: restores the code.
    fn leave(&mut self);
    /// Our memory in a process with restored code; `None` if the code may still lead there.
    fn unused(&self, process: i32) -> Option<Vec<Range<u64>>>;
}

/// Followed tasks, with the stopped ones.
pub struct Halting<'a> {
    pub following: Following<'a, dyn Watcher + 'a>,
    /// Stopped threads → how they continue.
    pub halted: BTreeMap<i32, Resume>,
    /// Number of executed programs.
    pub executed: u32,
}

impl<'a> Halting<'a> {
    /// All tasks run.
    pub fn new(following: Following<'a, dyn Watcher + 'a>) -> Self {
        Self { following, halted: BTreeMap::new(), executed: 0 }
    }

    /// Whether all tasks have ended.
    pub fn is_over(&self) -> bool {
        self.following.tasks.is_empty()
    }

    /// Followed processes → a thread that has not ended.
    pub fn processes(&self) -> BTreeMap<i32, i32> {
        let following = &self.following;
        let all = following.tasks.iter().filter(|(tid, _)| !following.ending.contains(tid));
        all.filter(|(tid, _)| !has_ended(**tid)).map(|(tid, process)| (*process, *tid)).collect()
    }

    /// A stopped thread of a process in which system calls can be made.
    pub fn fit(&self, process: i32) -> Option<Tracee> {
        let is_fit = |tid: &i32| Memory::open(*tid).is_ok_and(|memory| !may_restart(*tid, &memory));
        let is_own = |tid: &i32| self.following.tasks.get(tid) == Some(&process);
        let tid = self.halted.keys().copied().find(|tid| is_own(tid) && is_fit(tid))?;
        Some(Tracee { tid, leader: 0, process, is_live: true })
    }

    /// Handles stops of running threads; false if there were none.
    pub fn poll(&mut self) -> bool {
        let mut any = false;
        for tid in self.following.tasks.keys().copied().collect::<Vec<_>>() {
            if let Some(event) = stop(tid, 0) {
                any = true;
                if let Some(how) = self.handled(tid, event) {
                    resume(tid, how);
                }
            }
        }
        any
    }

    fn handled(&mut self, tid: i32, event: Stop) -> Option<Resume> {
        self.executed += u32::from(event == Stop::Exec);
        self.following.handled(tid, event)
    }

    /// Stops all threads. Threads that nothing wakes in the kernel (a parent in vfork(2)) stop
    /// before they return to their code, and are not awaited.
    ///
    /// # Errors
    /// The obstacle: not all have stopped after `most`, or one cannot be stopped.
    pub fn halt(&mut self, most: Duration) -> Result<(), Obstacle> {
        let begin = Instant::now();
        let (mut asked, mut last) = (BTreeSet::new(), begin);
        loop {
            let following = &self.following;
            let is_running =
                |tid: &i32| !self.halted.contains_key(tid) && !following.ending.contains(tid);
            let all: Vec<i32> = following.tasks.keys().copied().collect();
            // Ending threads are not awaited: they do not return to their code.
            let running: Vec<i32> = all.iter().copied().filter(is_running).collect();
            let waits = |tid: &i32| asked.contains(tid) && self.waits(*tid);
            if running.is_empty() || (last.elapsed() > GRACE && running.iter().all(waits)) {
                return Ok(());
            }
            if begin.elapsed() > most {
                let tid = running[0];
                return Err(Obstacle::Runs(tid, state(tid).unwrap_or('?')));
            }
            let mut any = false;
            for tid in all {
                any |= !self.halted.contains_key(&tid) && self.ask(tid, &mut asked);
            }
            if any {
                last = Instant::now();
            }
            rest(last);
        }
    }

    /// Whether an interrupted thread waits in the kernel, and may return to changed code.
    fn waits(&self, tid: i32) -> bool {
        state(tid) == Some('D')
            && pointer(tid).is_some_and(|at| self.following.follower.may_return(at))
    }

    /// Interrupts a thread, unless done before, and handles its stop; false if it has not stopped.
    fn ask(&mut self, tid: i32, asked: &mut BTreeSet<i32>) -> bool {
        if !asked.contains(&tid) && ptrace::interrupt(Pid::from_raw(tid)).is_ok() {
            asked.insert(tid);
        }
        let Some(event) = stop(tid, 0) else { return false };
        let Some(how) = self.handled(tid, event) else { return true };
        match event {
            Stop::Attached | Stop::GroupStop => drop(self.halted.insert(tid, how)),
            _ => {
                // Any stop cancels the interruption (Linux, ptrace_stop).
                let _ = ptrace::interrupt(Pid::from_raw(tid));
                resume(tid, how);
            }
        }
        true
    }

    /// Resumes all threads.
    pub fn go(&mut self) {
        for (tid, how) in std::mem::take(&mut self.halted) {
            resume(tid, how);
        }
    }
}
