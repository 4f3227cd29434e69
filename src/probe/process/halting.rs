//! All threads of a live process stopped together, and let go.

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

/// So long a thread that waits in the kernel may take to stop, if all others have.
const GRACE: Duration = Duration::from_millis(10);

/// What is done to a watched process, beside what is done at its events.
pub trait Watcher: Follower {
    /// All of it is stopped for the first time: whether it is as it was looked at.
    fn is_current(&self, tracee: &Tracee) -> bool;
    /// All of it is stopped, and as it was looked at: maps what is needed and can be filled while it runs;
    /// false if that is little.
    fn reserve(&mut self, tracee: &Tracee) -> bool;
    /// Fills that, for so long at most; whether all is done.
    fn fill(&mut self, most: Duration) -> bool;
    /// Whether code may be changed while a thread in the kernel is to come back to this address.
    fn may_return(&self, address: u64) -> bool;
    /// A thread is stopped, and the code will not be changed: takes away what was mapped for that; how much of it
    /// could not be.
    fn release(&mut self, tracee: &Tracee) -> usize;
    /// All of it is stopped for the last time: its code is to be as it was.
    fn leave(&mut self);
    /// The memory of ours in a process whose code was left; `None` if it may still lead there.
    fn unused(&self, process: i32) -> Option<Vec<Range<u64>>>;
}

/// Followed tasks, and those of them that are stopped.
pub struct Halting<'a> {
    pub following: Following<'a, dyn Watcher + 'a>,
    /// How the stopped threads continue.
    pub halted: BTreeMap<i32, Resume>,
    /// Programs that were executed.
    pub executed: u32,
}

impl<'a> Halting<'a> {
    /// All of them run.
    pub fn new(following: Following<'a, dyn Watcher + 'a>) -> Self {
        Self { following, halted: BTreeMap::new(), executed: 0 }
    }

    /// Whether all have ended.
    pub fn is_over(&self) -> bool {
        self.following.tasks.is_empty()
    }

    /// The followed processes, each with a thread that has not ended.
    pub fn processes(&self) -> BTreeMap<i32, i32> {
        let following = &self.following;
        let all = following.tasks.iter().filter(|(tid, _)| !following.ending.contains(tid));
        all.filter(|(tid, _)| !has_ended(**tid)).map(|(tid, process)| (*process, *tid)).collect()
    }

    /// A stopped thread of a process that can make system calls.
    pub fn fit(&self, process: i32) -> Option<Tracee> {
        let is_fit = |tid: &i32| Memory::open(*tid).is_ok_and(|memory| !may_restart(*tid, &memory));
        let of = |tid: &i32| self.following.tasks.get(tid) == Some(&process);
        let tid = self.halted.keys().copied().find(|tid| of(tid) && is_fit(tid))?;
        Some(Tracee { tid, leader: 0, process, is_live: true })
    }

    /// Handles the stops of running threads; whether there were any.
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

    /// Stops all threads; why not all of them could be. One that waits in the kernel where nothing wakes it
    /// (a parent in vfork(2)) stops before it comes back to its code, and is not waited for.
    ///
    /// # Errors
    /// Not all have stopped after `most`, or one cannot be stopped.
    pub fn halt(&mut self, most: Duration) -> Result<(), Obstacle> {
        let begin = Instant::now();
        let (mut asked, mut last) = (BTreeSet::new(), begin);
        loop {
            let following = &self.following;
            let is_running =
                |tid: &i32| !self.halted.contains_key(tid) && !following.ending.contains(tid);
            let all: Vec<i32> = following.tasks.keys().copied().collect();
            // Ends are awaited by nobody: such a thread does not come back to its code.
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

    /// Whether a thread that was asked to stop waits in the kernel, and may come back with changed code.
    fn waits(&self, tid: i32) -> bool {
        state(tid) == Some('D')
            && pointer(tid).is_some_and(|at| self.following.follower.may_return(at))
    }

    /// Asks a thread to stop, if it has not been, and looks whether it has; whether it had stopped at
    /// anything.
    fn ask(&mut self, tid: i32, asked: &mut BTreeSet<i32>) -> bool {
        if !asked.contains(&tid) && ptrace::interrupt(Pid::from_raw(tid)).is_ok() {
            asked.insert(tid);
        }
        let Some(event) = stop(tid, 0) else { return false };
        let Some(how) = self.handled(tid, event) else { return true };
        match event {
            Stop::Attached | Stop::GroupStop => drop(self.halted.insert(tid, how)),
            _ => {
                // Any stop takes the request back (Linux, ptrace_stop).
                let _ = ptrace::interrupt(Pid::from_raw(tid));
                resume(tid, how);
            }
        }
        true
    }

    /// Lets all threads run.
    pub fn go(&mut self) {
        for (tid, how) in std::mem::take(&mut self.halted) {
            resume(tid, how);
        }
    }
}
