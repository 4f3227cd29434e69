//! A live process, watched for a while: its threads are stopped together at the beginning and at the
//! end, and run freely between.

use super::followed::{Follower, Following, Stopped, options, refused};
use super::maps::mappings;
use super::memory::Memory;
use super::task::process_of;
use super::thread;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use pmu::perf::{Resume, Signals, resume, stop};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// So long all threads may take to stop.
const STOPPING: Duration = Duration::from_secs(2);
/// Time between polls while the process runs.
const POLL: Duration = Duration::from_micros(200);
/// Searches for new threads until none is found.
const MOST_SEARCHES: usize = 100;
/// Bytes of each stack that are looked at.
const STACK: usize = 1 << 20;

/// How the time went.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// From when all threads ran until they were stopped again.
    pub wall: Duration,
    /// The signal that interrupted it.
    pub interrupted: Option<i32>,
    /// Threads, at most.
    pub tasks: u32,
}

/// What is done to a watched process, beside what is done at its events.
pub trait Watcher: Follower {
    /// All of it is stopped for the last time: everything is to be as it was. `stopped` can make system
    /// calls; `None` where no thread can.
    fn leave(&mut self, stopped: Option<&Stopped>);
}

struct Watching<'a> {
    following: Following<'a>,
    /// How the stopped threads continue.
    stopped: BTreeMap<i32, Resume>,
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
    let tasks = seize(pid)?;
    let following =
        Following { leader: 0, tasks, calls: BTreeMap::new(), follower: &mut *watcher, created: 0 };
    let mut watching = Watching { following, stopped: BTreeMap::new() };
    if !watching.halt() || !watching.begin(pid) {
        watching.detach();
        return Err(Error::not_possible(format!("process {pid} cannot be stopped"))
            .because("one of its threads does not stop, or it is stopped by a signal")
            .hint("continue it (kill -CONT), or try again"));
    }
    watching.go();
    let begin = Instant::now();
    let mut interrupted = None;
    while begin.elapsed() < window && interrupted.is_none() && !watching.following.tasks.is_empty()
    {
        if !watching.following.poll() {
            std::thread::sleep(POLL);
        }
        interrupted = signals.next().map(|(signal, _)| signal);
    }
    let wall = begin.elapsed();
    let tasks = watching.following.tasks.len() as u32 + watching.following.created;
    // A thread that does not stop is in the kernel: the code may be changed under it.
    let all_stopped = watching.halt();
    let last = watching.thread(pid).filter(|_| all_stopped);
    let Watching { following: Following { tasks: all, .. }, stopped } = watching;
    watcher.leave(last.as_ref());
    detach(&all, &stopped);
    Ok(Watched { wall, interrupted, tasks })
}

/// Traces all threads of a process.
fn seize(pid: i32) -> Result<BTreeMap<i32, i32>> {
    let mut tasks = BTreeMap::new();
    for _ in 0..MOST_SEARCHES {
        let mut any = false;
        for tid in threads(pid) {
            if tasks.contains_key(&tid) {
                continue;
            }
            match ptrace::seize(Pid::from_raw(tid), options()) {
                Ok(()) => any |= tasks.insert(tid, pid).is_none(),
                // It has ended, or is traced since its creation.
                Err(nix::errno::Errno::ESRCH) => {}
                Err(_) if tracer(tid) == Some(std::process::id()) => {
                    tasks.insert(tid, pid);
                }
                Err(errno) => {
                    detach(&tasks, &BTreeMap::new());
                    return Err(refused(errno));
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

fn tracer(tid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim().parse().ok()
}

impl Watching<'_> {
    /// Stops all threads; whether all have.
    fn halt(&mut self) -> bool {
        let begin = Instant::now();
        let mut asked = BTreeSet::new();
        loop {
            let all: Vec<i32> = self.following.tasks.keys().copied().collect();
            let running: Vec<i32> =
                all.into_iter().filter(|tid| !self.stopped.contains_key(tid)).collect();
            if running.is_empty() || begin.elapsed() > STOPPING {
                return running.is_empty();
            }
            for tid in running {
                if asked.insert(tid) {
                    let _ = ptrace::interrupt(Pid::from_raw(tid));
                }
                if let Some(event) = stop(tid, 0)
                    && let Some(how) = self.following.handled(tid, event)
                {
                    self.stopped.insert(tid, how);
                }
            }
            std::thread::yield_now();
        }
    }

    /// Reports the files that the process has mapped, with where its threads are; whether a thread can
    /// make system calls.
    fn begin(&mut self, pid: i32) -> bool {
        let Some(stopped) = self.thread(pid) else { return false };
        self.following.follower.mapped(&stopped);
        true
    }

    /// A stopped thread of the process that can make system calls.
    fn thread(&self, pid: i32) -> Option<Stopped> {
        let of = |tid: &i32| self.following.tasks.get(tid) == Some(&pid);
        let mut all = self.stopped.iter().filter(|(tid, _)| of(tid));
        let (&tid, _) = all.find(|(_, how)| **how != Resume::Listen)?;
        let begun = begun(pid, self.stopped.keys().copied());
        Some(Stopped { tid, leader: 0, process: pid, begun })
    }

    /// Lets all threads run.
    fn go(&mut self) {
        for (tid, how) in std::mem::take(&mut self.stopped) {
            resume(tid, how);
        }
    }

    fn detach(self) {
        detach(&self.following.tasks, &self.stopped);
    }
}

/// Ends tracing.
fn detach(tasks: &BTreeMap<i32, i32>, stopped: &BTreeMap<i32, Resume>) {
    for tid in tasks.keys() {
        let signal = match stopped.get(tid) {
            None => {
                pmu::perf::release(*tid);
                continue;
            }
            Some(Resume::Continue(signal)) => Signal::try_from(*signal).ok(),
            Some(_) => None,
        };
        let _ = ptrace::detach(Pid::from_raw(*tid), signal);
    }
}

/// The instruction pointers of stopped threads and the words on their stacks: return addresses, and
/// where signals have interrupted them.
fn begun(pid: i32, tids: impl Iterator<Item = i32>) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let Ok(memory) = Memory::open(pid) else { return found };
    let all = mappings(pid);
    let code: Vec<_> = all.iter().filter(|m| m.is_executable()).collect();
    for tid in tids.filter(|tid| process_of(*tid) == pid) {
        let Ok(registers) = thread::registers(tid) else { continue };
        found.insert(registers.pointer);
        let top = registers.general[4];
        let stack = all.iter().find(|m| (m.start..m.end).contains(&top));
        let length = stack.map_or(0, |m| usize::try_from(m.end - top).unwrap_or(0).min(STACK));
        let bytes = memory.read(top & !7, length);
        let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        found.extend(words.filter(|w| code.iter().any(|m| (m.start..m.end).contains(w))));
    }
    found
}
