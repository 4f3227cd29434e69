//! Watches a live process in a time window: all threads, and tasks that share its memory, are traced and stopped at its
//! beginning and end, and run freely in between.
//!
//! Each thread is stopped where the kernel checks for signals (PTRACE_INTERRUPT), never before the delivery of one, so
//! that no signal is held or lost; after any other stop it is resumed and interrupted again. The code is restored without
//! a thread, by `/proc/PID/mem`.

use super::followed::{Following, OPTIONS, rest};
use super::halting::{Halting, Obstacle, Pauses, Watcher};
use super::seize::{Living, has_ended, refused, seize, sharers, threads, tracer};
use super::thread::process_of;
use super::vacating::vacate;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, gettid};
use pmu::perf::{Resume, Signals};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Time limit for all threads to stop at the beginning.
const STOPPING: Duration = Duration::from_secs(2);
/// Time limit for tries at the beginning.
const TRYING: Duration = Duration::from_secs(2);
/// Time limit for tries to unmap our memory at the end.
const VACATING: Duration = Duration::from_millis(50);
/// Time for filling memory between two polls of the threads.
const SLICE: Duration = Duration::from_millis(1);

/// Outcome of a window.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Time for which all threads ran.
    pub wall: Duration,
    /// Time for which they were stopped at the beginning and the end.
    pub stopped: Duration,
    /// The signal that ended the window early.
    pub interrupted: Option<i32>,
    /// Upper bound of the number of threads.
    pub tasks: u32,
    /// Programs that the process executed meanwhile.
    pub executed: u32,
    /// The process has ended meanwhile.
    pub ended: bool,
    /// Why its code was not restored.
    pub remains: Option<Obstacle>,
    /// Why our memory stays mapped in it.
    pub still_mapped: Option<Obstacle>,
}

/// Watches a process for `window`; `None`, without any change, if it has changed since its
/// analysis. Threads that still wait in the kernel at the end are traced until this thread ends.
///
/// # Errors
/// It cannot be traced or stopped; it is unchanged then.
pub fn watch(
    living: &Living,
    watcher: &mut dyn Watcher,
    window: Duration,
    signals: &Signals,
) -> Result<Option<Watched>> {
    let pid = living.pid;
    let tasks = seize_all(pid, living.leader())?;
    if tasks.is_empty() {
        return Err(living.ended("while its code was analysed"));
    }
    let following =
        Following { into_exec: false, ..Following::new(living.leader(), tasks, watcher) };
    let mut halting = Halting::new(following);
    let mut stopped = Duration::ZERO;
    let ready = ready(&mut halting, pid, &mut stopped);
    if ready.is_err() && halting.is_over() {
        return Err(living.ended("while it was stopped"));
    }
    if ready != Ok(true) {
        let left = release(&mut halting, pid);
        detach(&halting);
        let error = Error::not_possible(format!("process {pid} cannot be counted now"));
        return match (ready, left) {
            (Ok(_), None) => Ok(None),
            (Ok(_), Some(left)) => Err(error.because(format!("it has changed meanwhile; {left}"))),
            (Err(why), left) => Err(error
                .because(left.map_or(why.to_string(), |left| format!("{why}; {left}")))
                .hint("try again, or count from its start: `tdtool count -- COMMAND`")),
        };
    }
    let begin = Instant::now();
    let mut interrupted = None;
    run(&mut halting, || {
        interrupted = living.signal(signals);
        begin.elapsed() < window && interrupted.is_none()
    });
    let (wall, ended) = (begin.elapsed(), halting.is_over());
    let begin = Instant::now();
    let remains = halt_all(&mut halting).err();
    let (mut still_mapped, mut ran) = (None, Duration::ZERO);
    if remains.is_none() {
        named(&mut halting);
        halting.following.follower.leave();
        // Code of a child's probes makes no calls, so that only a signal keeps an address in it. After a signal the memory
        // stays mapped: to look for such addresses takes long, and the child ends with us.
        let is_child = living.leader() != 0;
        if !is_child || halting.signals == 0 {
            still_mapped = vacated(&mut halting, !is_child, &mut ran);
        }
    }
    detach(&halting);
    stopped += begin.elapsed().saturating_sub(ran);
    let tasks = halting.following.tasks.len() as u32 + halting.following.created;
    let executed = halting.executed;
    Ok(Some(Watched { wall, stopped, interrupted, tasks, executed, ended, remains, still_mapped }))
}

/// Reports each stopped thread with the base of its own memory, which identifies it in logs.
fn named(halting: &mut Halting<'_>) {
    let following = &mut halting.following;
    for (tid, process) in &following.tasks {
        if let Ok(registers) = ptrace::getregs(Pid::from_raw(*tid)) {
            following.follower.thread_ending(*process, *tid, registers.fs_base);
        }
    }
}

/// Unmaps our memory after the code was restored; why some of it stays. Contexts interrupted in it
/// may end soon, as that of a signal handler: the process runs for short times in between, `ran` in
/// all. `may_be`: addresses in it may be saved.
fn vacated(halting: &mut Halting<'_>, may_be: bool, ran: &mut Duration) -> Option<Obstacle> {
    let first = Instant::now();
    let mut pauses = Pauses::default();
    loop {
        let refused = vacate(halting, may_be)?;
        if refused.lasts() || first.elapsed() > VACATING {
            return Some(refused);
        }
        *ran += run_for(halting, pauses.next(first.elapsed()));
        if halting.is_over() {
            return None;
        }
        if halt_all(halting).is_err() {
            return Some(refused);
        }
    }
}

/// Unmaps memory for code that will not be changed, with a thread that can make system calls; why
/// some of it stays.
fn release(halting: &mut Halting<'_>, pid: i32) -> Option<Obstacle> {
    let first = Instant::now();
    let mut pauses = Pauses::default();
    while !halting.is_over() {
        if let Some(tracee) = halting.fit(pid) {
            let left = halting.following.follower.release(&tracee);
            return (left > 0).then_some(Obstacle::Unremoved(left));
        }
        if first.elapsed() > TRYING {
            return Some(Obstacle::NoneRemoved);
        }
        run_for(halting, pauses.next(first.elapsed()));
        // One thread is enough.
        let _ = halting.halt(STOPPING);
    }
    None
}

/// Lets all threads run while `more` holds, or until they have ended.
fn run(halting: &mut Halting<'_>, mut more: impl FnMut() -> bool) {
    halting.go();
    let mut last = Instant::now();
    while more() && !halting.is_over() {
        halting.following.follower.tick();
        match halting.poll() {
            true => last = Instant::now(),
            false => rest(last),
        }
    }
}

/// Lets all threads run for a pause; the time it took.
fn run_for(halting: &mut Halting<'_>, pause: Duration) -> Duration {
    let begin = Instant::now();
    run(halting, || begin.elapsed() < pause);
    begin.elapsed()
}

/// Stops a process and has it changed; tries again after temporary obstacles, such as a child of
/// vfork(2). False if it has changed since its analysis; `Err`: the obstacle.
fn ready(
    halting: &mut Halting<'_>,
    pid: i32,
    stopped: &mut Duration,
) -> std::result::Result<bool, Obstacle> {
    let mut first = Instant::now();
    let mut is_reserved = false;
    let mut pauses = Pauses::default();
    loop {
        let begin = Instant::now();
        let found = halting.halt(STOPPING).and_then(|()| change(halting, pid, &mut is_reserved));
        *stopped += begin.elapsed();
        match found {
            Ok(Changed::Not) => return Ok(false),
            Ok(Changed::All) => return Ok(true),
            Ok(Changed::Mapped) => {
                halting.go();
                while !halting.following.follower.fill(SLICE) && !halting.is_over() {
                    halting.poll();
                }
                first = Instant::now();
                continue;
            }
            Err(why) if why.lasts() || first.elapsed() > TRYING || halting.is_over() => {
                return Err(why);
            }
            Err(_) => {}
        }
        run_for(halting, pauses.next(first.elapsed()));
    }
}

/// Change of a stopped process.
enum Changed {
    /// None: it differs from its analysis.
    Not,
    /// Memory to be filled is mapped.
    Mapped,
    /// Its code is patched.
    All,
}

/// Has a stopped process changed, if it is as analysed: in two steps, if much memory is to be
/// filled first.
fn change(
    halting: &mut Halting<'_>,
    pid: i32,
    is_reserved: &mut bool,
) -> std::result::Result<Changed, Obstacle> {
    if halting.halted.values().any(|how| *how == Resume::Listen) {
        return Err(Obstacle::Stopped(pid));
    }
    let following = &halting.following;
    for (process, tid) in halting.processes() {
        if let Some(other) = untraced(following, tid, process).first() {
            return Err(Obstacle::Shared(*other));
        }
    }
    let Some(tracee) = halting.fit(pid) else {
        return Err(Obstacle::NoCalls { is_after: false });
    };
    if !halting.following.follower.is_current(&tracee) {
        return Ok(Changed::Not);
    }
    if !std::mem::replace(is_reserved, true) && halting.following.follower.reserve(&tracee) {
        return Ok(Changed::Mapped);
    }
    if halting.is_between() {
        return Err(Obstacle::Between);
    }
    halting.following.follower.mapped(&tracee);
    Ok(Changed::All)
}

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
fn seize_all(pid: i32, leader: i32) -> Result<BTreeMap<i32, i32>> {
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
                        pmu::perf::release(*tid, leader);
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
fn untraced(following: &Following<'_, dyn Watcher + '_>, tid: i32, process: i32) -> Vec<i32> {
    let is_new = |tid: &i32| !following.tasks.contains_key(tid) && !has_ended(*tid);
    let own: BTreeSet<i32> = following.tasks.values().copied().collect();
    let others = sharers(tid, process).into_iter().filter(|other| !own.contains(other));
    threads(process).into_iter().filter(is_new).chain(others).collect()
}

/// Stops all tasks that share the memory of the followed processes, also untraced ones
/// (CLONE_UNTRACED).
fn halt_all(halting: &mut Halting<'_>) -> std::result::Result<(), Obstacle> {
    for _ in 0..MOST_SEARCHES {
        halting.halt(LEAVING)?;
        let mut any = false;
        for (process, tid) in halting.processes() {
            for other in untraced(&halting.following, tid, process) {
                let process = process_of(other);
                let seized = match process == other {
                    true => seize_all(other, halting.following.leader)
                        .map_err(|e| Obstacle::Untraced(e.into()))?,
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
fn detach(halting: &Halting<'_>) {
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
            pmu::perf::release(*tid, halting.following.leader);
        }
    }
}
