//! Traces, stops and detaches all threads of a live process, and tasks that share its memory.

use super::followed::{Following, OPTIONS};
use super::halting::{Halting, Watcher};
use super::living::{has_ended, threads};
use super::obstacle::Obstacle;
use super::seize::{refused, seize, tracer};
use super::sharing::sharers;
use super::task::process_of;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, gettid};
use pmu::perf::Resume;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tma::Result;

/// Most searches for new threads.
const MOST_SEARCHES: usize = 100;
/// Time limit for all threads to stop at the end, after which probes remain.
const LEAVING: Duration = Duration::from_secs(10);
/// Time limit for detaching from threads that wait in the kernel.
const PARTING: Duration = Duration::from_millis(100);

/// Traces all threads of a process that have not ended.
///
/// # Errors
/// One of them may not be traced: then none is.
pub fn seize_all(pid: i32) -> Result<BTreeMap<i32, i32>> {
    let mut tasks = BTreeMap::new();
    for _ in 0..MOST_SEARCHES {
        let mut any = false;
        for tid in threads(pid) {
            if tasks.contains_key(&tid) {
                continue;
            }
            match seized(tid) {
                Ok(true) => any |= tasks.insert(tid, pid).is_none(),
                Ok(false) => {}
                Err(errno) => {
                    for tid in tasks.keys() {
                        pmu::perf::release(*tid);
                    }
                    return Err(refused(&format!("process {pid}"), tid, errno));
                }
            }
        }
        if !any {
            break;
        }
    }
    Ok(tasks)
}

/// Traces a thread; false if it has ended.
fn seized(tid: i32) -> nix::Result<bool> {
    match seize(tid, OPTIONS) {
        Ok(()) => Ok(true),
        Err(Errno::ESRCH) => Ok(false),
        // The first thread may have ended before the others.
        Err(_) if has_ended(tid) => Ok(false),
        // We have traced it since its creation.
        Err(_) if tracer(tid) == Some(gettid().as_raw()) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// Untraced threads and processes that share the memory of thread `tid` of `process`.
pub fn untraced(following: &Following<'_, dyn Watcher + '_>, tid: i32, process: i32) -> Vec<i32> {
    let is_new = |tid: &i32| !following.tasks.contains_key(tid) && !has_ended(*tid);
    let own: BTreeSet<i32> = following.tasks.values().copied().collect();
    let others = sharers(tid, process).into_iter().filter(|other| !own.contains(other));
    threads(process).into_iter().filter(is_new).chain(others).collect()
}

/// Stops all tasks that share the memory of the followed processes, also untraced ones
/// (CLONE_UNTRACED).
///
/// # Errors
/// The obstacle.
pub fn halt_all(halting: &mut Halting<'_>) -> std::result::Result<(), Obstacle> {
    for _ in 0..MOST_SEARCHES {
        halting.halt(LEAVING)?;
        let mut any = false;
        for (process, tid) in halting.processes() {
            for other in untraced(&halting.following, tid, process) {
                let process = process_of(other);
                let seized = match process == other {
                    true => seize_all(other).map_err(|e| Obstacle::Untraced(e.into()))?,
                    false => match seized(other) {
                        Ok(true) => BTreeMap::from([(other, process)]),
                        Ok(false) => BTreeMap::new(),
                        Err(errno) => return Err(Obstacle::UntracedThread(other, errno)),
                    },
                };
                any |= !seized.is_empty();
                halting.following.tasks.extend(seized);
            }
        }
        if !any {
            return Ok(());
        }
    }
    Err(Obstacle::Threads)
}

/// Detaches from stopped threads, then from those that run or wait in the kernel. Threads that do
/// not stop soon are traced until this thread ends.
pub fn detach(halting: &Halting<'_>) {
    let is_halted = |tid: &&i32| halting.halted.contains_key(tid);
    let tasks = &halting.following.tasks;
    for tid in tasks.keys().filter(is_halted) {
        let signal = match halting.halted.get(tid) {
            Some(Resume::Continue(signal)) => Signal::try_from(*signal).ok(),
            _ => None,
        };
        let _ = ptrace::detach(Pid::from_raw(*tid), signal);
    }
    let begin = Instant::now();
    for tid in tasks.keys().filter(|tid| !is_halted(tid)) {
        if begin.elapsed() < PARTING {
            pmu::perf::release(*tid);
        }
    }
}
