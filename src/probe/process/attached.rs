//! A live process, watched for a while: its threads are stopped together at the beginning and at the
//! end, and run freely between.
//!
//! Every thread is stopped where the kernel looks for signals (PTRACE_INTERRUPT), never before the
//! delivery of one, so that no signal is held or lost; one that is stopped at something else is
//! resumed and asked again. What is done at the end needs no thread: bytes are written by
//! `/proc/PID/mem`.

use super::followed::{Follower, Following, OPTIONS, rest};
use super::seize::{refused, seize, tracer};
use super::sharing::shares_with;
use super::signals::may_restart;
use super::tracee::Tracee;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use pmu::perf::{Resume, Signals, Stop, resume, stop};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// So long all threads may take to stop.
const STOPPING: Duration = Duration::from_secs(2);
/// So long a thread that waits in the kernel may take to be left at the end.
const LEAVING: Duration = Duration::from_secs(5);
/// Time between polls of what waits in the kernel.
const POLL: Duration = Duration::from_millis(1);
/// Searches for new threads until none is found.
const MOST_SEARCHES: usize = 100;

/// How the time went.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// From when all threads ran until they were stopped again.
    pub wall: Duration,
    /// How long they were stopped at the beginning and at the end.
    pub stopped: Duration,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    /// Threads, at most.
    pub tasks: u32,
    /// Programs that it executed meanwhile.
    pub executed: u32,
    /// It has ended meanwhile.
    pub ended: bool,
}

/// What is done to a watched process, beside what is done at its events.
pub trait Watcher: Follower {
    /// All of it is stopped for the last time: everything is to be as it was.
    fn leave(&mut self);
}

struct Watching<'a> {
    following: Following<'a>,
    /// How the stopped threads continue.
    halted: BTreeMap<i32, Resume>,
    executed: u32,
}

/// Watches process `pid` for `window`.
///
/// # Errors
/// It cannot be traced or stopped; nothing of it is changed then.
pub fn watch(
    pid: i32,
    watcher: &mut dyn Watcher,
    window: Duration,
    signals: &Signals,
) -> Result<Watched> {
    let tasks = seize_all(pid)?;
    let following = Following::new(0, tasks, &mut *watcher);
    let mut watching = Watching { following, halted: BTreeMap::new(), executed: 0 };
    let begin = Instant::now();
    let ready = watching.halt().and_then(|()| watching.begin(pid));
    if let Err(why) = ready {
        watching.detach();
        return Err(Error::not_possible(format!("process {pid} cannot be counted now"))
            .because(why)
            .hint("try again, or count from its start: tdtool count -- COMMAND"));
    }
    let mut paused = begin.elapsed();
    watching.go();
    let begin = Instant::now();
    let (mut interrupted, mut last) = (None, begin);
    while begin.elapsed() < window && interrupted.is_none() && !watching.is_over() {
        match watching.poll() {
            true => last = Instant::now(),
            false => rest(last),
        }
        interrupted = signals.next().map(|(signal, _)| signal);
    }
    let (wall, ended) = (begin.elapsed(), watching.is_over());
    let begin = Instant::now();
    // A thread that waits in the kernel stops before it comes back to its code.
    let _ = watching.halt();
    let executed = watching.executed;
    let Watching { following, halted, .. } = watching;
    let tasks = following.tasks.len() as u32 + following.created;
    let all: Vec<i32> = following.tasks.keys().copied().collect();
    watcher.leave();
    detach(&all, &halted);
    paused += begin.elapsed();
    Ok(Watched { wall, stopped: paused, interrupted, tasks, executed, ended })
}

/// Traces all threads of a process.
fn seize_all(pid: i32) -> Result<BTreeMap<i32, i32>> {
    let mut tasks = BTreeMap::new();
    let mut zombies = BTreeSet::new();
    for _ in 0..MOST_SEARCHES {
        let mut any = false;
        for tid in threads(pid) {
            if tasks.contains_key(&tid) || zombies.contains(&tid) {
                continue;
            }
            match seize(tid, OPTIONS) {
                Ok(()) => any |= tasks.insert(tid, pid).is_none(),
                Err(Errno::ESRCH) => {}
                // The first thread may have ended before the others.
                Err(_) if matches!(state(tid), None | Some('Z' | 'X')) => {
                    zombies.insert(tid);
                }
                // Traced since its creation.
                Err(_) if tracer(tid) == Some(std::process::id().cast_signed()) => {
                    any |= tasks.insert(tid, pid).is_none();
                }
                Err(errno) => {
                    let all: Vec<i32> = tasks.keys().copied().collect();
                    detach(&all, &BTreeMap::new());
                    return Err(refused(&format!("process {pid}"), tid, errno));
                }
            }
        }
        if !any {
            break;
        }
    }
    match tasks.is_empty() {
        true => Err(Error::failed(format!("there is no process {pid}"))),
        false => Ok(tasks),
    }
}

fn threads(pid: i32) -> Vec<i32> {
    let all = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The state of a thread: the third field of proc_pid_stat(5).
fn state(tid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

impl Watching<'_> {
    fn is_over(&self) -> bool {
        self.following.tasks.is_empty()
    }

    fn poll(&mut self) -> bool {
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

    /// Stops all threads; why not all of them could be.
    fn halt(&mut self) -> std::result::Result<(), String> {
        let begin = Instant::now();
        let mut asked = BTreeSet::new();
        loop {
            let following = &self.following;
            let is_running =
                |tid: &i32| !self.halted.contains_key(tid) && !following.ending.contains(tid);
            let all: Vec<i32> = following.tasks.keys().copied().collect();
            // Ends are awaited by nobody: such a thread does not come back to its code.
            let running: Vec<i32> = all.iter().copied().filter(is_running).collect();
            if running.is_empty() {
                return Ok(());
            }
            if begin.elapsed() > STOPPING {
                return Err(match running.iter().all(|tid| state(*tid) == Some('D')) {
                    true => {
                        "one of its threads waits in the kernel and cannot be stopped".to_owned()
                    }
                    false => "one of its threads does not stop".to_owned(),
                });
            }
            for tid in all {
                if !self.halted.contains_key(&tid) {
                    self.ask(tid, &mut asked);
                }
            }
            std::thread::yield_now();
        }
    }

    /// Asks a thread to stop, if it has not been, and looks whether it has.
    fn ask(&mut self, tid: i32, asked: &mut BTreeSet<i32>) {
        if !asked.contains(&tid) && ptrace::interrupt(Pid::from_raw(tid)).is_ok() {
            asked.insert(tid);
        }
        let Some(event) = stop(tid, 0) else { return };
        let Some(how) = self.handled(tid, event) else { return };
        match event {
            Stop::Attached | Stop::GroupStop => drop(self.halted.insert(tid, how)),
            _ => {
                // Any stop takes the request back (Linux, ptrace_stop).
                let _ = ptrace::interrupt(Pid::from_raw(tid));
                resume(tid, how);
            }
        }
    }

    /// Reports the files that the process has mapped; why no thread can make system calls.
    fn begin(&mut self, pid: i32) -> std::result::Result<(), String> {
        if self.halted.values().any(|how| *how == Resume::Listen) {
            return Err(format!("it is stopped by a signal; kill -CONT {pid} continues it"));
        }
        if let Some(other) = shares_with(pid, self.halted.keys().copied()) {
            return Err(format!("process {other} has the same memory, and runs on"));
        }
        let memory = |tid| super::memory::Memory::open(tid).ok();
        let is_fit = |tid: &i32| memory(*tid).is_some_and(|memory| !may_restart(*tid, &memory));
        let of = |tid: &i32| self.following.tasks.get(tid) == Some(&pid);
        let mut all = self.halted.keys().copied().filter(|tid| of(tid) && is_fit(tid));
        let tid = all.next().ok_or("none of its threads is where it can make system calls")?;
        let tracee = Tracee { tid, leader: 0, process: pid, is_live: true };
        self.following.follower.mapped(&tracee);
        Ok(())
    }

    /// Lets all threads run.
    fn go(&mut self) {
        for (tid, how) in std::mem::take(&mut self.halted) {
            resume(tid, how);
        }
    }

    fn detach(self) {
        let all: Vec<i32> = self.following.tasks.keys().copied().collect();
        detach(&all, &self.halted);
    }
}

/// Ends tracing of stopped threads, then of those that still run or wait in the kernel.
fn detach(tasks: &[i32], halted: &BTreeMap<i32, Resume>) {
    let is_halted = |tid: &&i32| halted.contains_key(tid);
    for tid in tasks.iter().filter(is_halted) {
        let _ = ptrace::detach(Pid::from_raw(*tid), None);
    }
    let begin = Instant::now();
    for tid in tasks.iter().filter(|tid| !is_halted(tid)) {
        // Also one that has ended: its parent waits until this process has waited for it.
        while !pmu::perf::release(*tid) && begin.elapsed() < LEAVING {
            // A first thread that has ended before the others stays until they end.
            if matches!(state(*tid), None | Some('Z' | 'X')) {
                break;
            }
            std::thread::sleep(POLL);
        }
    }
}
