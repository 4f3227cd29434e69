//! Stops and resumes all threads of a live process together, with pauses between tries. Has the reasons why a
//! process cannot be stopped, changed or restored.

use super::followed::{Follower, Following, rest};
use super::inject::may_restart;
use super::memory::Memory;
use super::seize::{handles, has_ended, pointer, state};
use super::tracee::Tracee;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use pmu::perf::{Resume, Stop, resume, stop};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};
use std::{fmt, io};
use tma::{Cause, Error};

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
    /// Whether several instructions are replaced at once: no thread may be between them, or return there.
    fn joins(&self) -> bool;
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
    /// Number of signals to the threads.
    pub signals: u32,
}

impl<'a> Halting<'a> {
    /// All tasks run.
    pub fn new(following: Following<'a, dyn Watcher + 'a>) -> Self {
        Self { following, halted: BTreeMap::new(), executed: 0, signals: 0 }
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
        Some(Tracee { tid, leader: self.following.leader, process, is_live: true })
    }

    /// Handles stops of running threads; false if there were none.
    pub fn poll(&mut self) -> bool {
        let mut any = false;
        for tid in self.following.tasks.keys().copied().collect::<Vec<_>>() {
            if let Some(event) = stop(tid, self.following.leader) {
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
        self.signals += u32::from(matches!(event, Stop::Signal(_)));
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
        let Some(event) = stop(tid, self.following.leader) else { return false };
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

    /// Whether a stopped thread is between instructions that are to be replaced together, or may return there.
    pub fn is_between(&self) -> bool {
        let follower = &self.following.follower;
        let may_return = |tid: &i32| {
            let registers = ptrace::getregs(Pid::from_raw(*tid));
            !handles(*tid) && registers.is_ok_and(|found| follower.may_return(found.rip))
        };
        follower.joins() && !self.halted.keys().all(may_return)
    }

    /// Resumes all threads.
    pub fn go(&mut self) {
        for (tid, how) in std::mem::take(&mut self.halted) {
            resume(tid, how);
        }
    }
}

/// Why a live process cannot be stopped, changed or restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// This thread does not stop: its state (proc_pid_stat(5)).
    Runs(i32, char),
    /// It is stopped by a signal: its number.
    Stopped(i32),
    /// This process shares its memory, and is not traced.
    Shared(i32),
    /// None of its threads can make system calls.
    NoCalls {
        /// After its code was changed, not before.
        is_after: bool,
    },
    /// Some of its threads cannot be traced.
    Untraced(Cause<Error>),
    /// This thread cannot be traced.
    UntracedThread(i32, Errno),
    /// Threads are started faster than they are found.
    Threads,
    /// Its code still leads to our memory.
    Leads,
    /// Its memory cannot be opened.
    Unopened(Cause<io::Error>),
    /// Its memory cannot be searched for addresses of ours.
    Unseen(Cause<io::Error>),
    /// A part of its memory cannot be read in the search.
    Unread,
    /// It has too many addresses for the search.
    Addresses,
    /// It has more memory than the limit of the search, in MiB.
    Memory(u64),
    /// The registers of a thread cannot be read.
    Registers(Errno),
    /// A thread is executing our memory.
    Inside,
    /// A thread is, or may return, where instructions are to be replaced.
    Between,
    /// The return address of a thread that waits in the kernel is unknown.
    Waits,
    /// The word at this address is an address in our memory.
    Held(u64),
    /// This number of ranges could not be unmapped.
    Mapped(usize),
    /// This number of ranges mapped for unchanged code could not be unmapped.
    Unremoved(usize),
    /// No thread could unmap the ranges mapped for unchanged code.
    NoneRemoved,
}

impl Obstacle {
    /// Whether it is unlikely to end soon.
    pub fn lasts(&self) -> bool {
        !matches!(
            self,
            Self::Runs(..)
                | Self::Shared(_)
                | Self::NoCalls { .. }
                | Self::Registers(_)
                | Self::Inside
                | Self::Between
                | Self::Waits
                | Self::Held(_)
        )
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs(tid, state) => {
                write!(f, "thread {tid} of it does not stop (state {state})")
            }
            Self::Stopped(pid) => {
                write!(f, "it is stopped by a signal; kill -CONT {pid} continues it")
            }
            Self::Shared(other) => write!(f, "process {other} has the same memory, and runs on"),
            Self::NoCalls { is_after: false } => {
                f.write_str("none of its threads is where it can make system calls")
            }
            Self::NoCalls { is_after: true } => {
                f.write_str("none of its threads can make system calls")
            }
            Self::Untraced(error) => error.fmt(f),
            Self::UntracedThread(tid, errno) => write!(f, "thread {tid}: {}", errno.desc()),
            Self::Threads => f.write_str("it starts threads faster than they are found"),
            Self::Leads => f.write_str("its code still leads there"),
            Self::Unopened(error) => write!(f, "its memory cannot be opened: {error}"),
            Self::Unseen(error) => write!(f, "its memory cannot be looked at: {error}"),
            Self::Unread => f.write_str("a part of its memory cannot be read"),
            Self::Addresses => {
                f.write_str("it has too many addresses to look whether it comes back there")
            }
            Self::Memory(most) => {
                write!(f, "it has more than {most} MiB that may have saved where it comes back")
            }
            Self::Registers(errno) => f.write_str(errno.desc()),
            Self::Inside => f.write_str("a thread is in it"),
            Self::Between => f.write_str("a thread is where its code is to be replaced"),
            Self::Waits => f.write_str("where a thread of it waits is not known"),
            Self::Held(at) => write!(f, "what was interrupted there may come back, by {at:#x}"),
            Self::Mapped(left) => write!(f, "{left} ranges could not be unmapped"),
            Self::Unremoved(left) => write!(f, "{left} mappings of ours remain in it"),
            Self::NoneRemoved => f.write_str(
                "what was mapped for its probes remains: none of its threads could take it away",
            ),
        }
    }
}

impl std::error::Error for Obstacle {}

/// Length of a short pause.
const SHORT: Duration = Duration::from_millis(1);
/// Short pauses before each long one.
const RUN: u32 = 8;

/// Mostly short pauses, since an obstacle may be frequent, but long ones for half of the time: some
/// timeouts (epoll_wait, say) restart with every stop, and must expire once.
#[derive(Debug, Default)]
pub struct Pauses {
    number: u32,
}

impl Pauses {
    /// The next pause, `since` after the first try.
    pub fn next(&mut self, since: Duration) -> Duration {
        self.number += 1;
        if self.number.is_multiple_of(RUN + 1) { since.max(SHORT) } else { SHORT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 8 tries of 1 ms and their pauses, 16 as long; each round doubles the time and adds
    /// 17 ms.
    #[test]
    fn a_timeout_ends_within_a_few_times_as_long() {
        let (mut pauses, mut since) = (Pauses::default(), Duration::ZERO);
        let mut longest = Vec::new();
        for _ in 0..4 * 9 {
            since += Duration::from_millis(1);
            let pause = pauses.next(since);
            since += pause;
            if pause > SHORT {
                longest.push((pause.as_millis(), since.as_millis()));
            }
        }
        assert_eq!(longest, [(17, 34), (51, 102), (119, 238), (255, 510)]);
    }
}
