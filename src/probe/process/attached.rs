//! Watches a live process in a time window: all threads are stopped at its beginning and end, and
//! run freely in between.
//!
//! Each thread is stopped where the kernel checks for signals (PTRACE_INTERRUPT), never before the
//! delivery of one, so that no signal is held or lost; after any other stop it is resumed and
//! interrupted again. The code is restored without a thread, by `/proc/PID/mem`.

use super::followed::{Following, rest};
use super::halting::{Halting, Watcher};
use super::living::Living;
use super::obstacle::Obstacle;
use super::pauses::Pauses;
use super::threads::{detach, halt_all, seize_all, untraced};
use super::vacating::vacate;
use nix::sys::ptrace;
use nix::unistd::Pid;
use pmu::perf::{Resume, Signals};
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
    let tasks = seize_all(pid)?;
    if tasks.is_empty() {
        return Err(living.ended("while its code was analysed"));
    }
    let mut halting = Halting::new(Following::new(0, tasks, watcher));
    let mut stopped = Duration::ZERO;
    match ready(&mut halting, pid, &mut stopped) {
        Ok(true) => {}
        Ok(false) => {
            let left = release(&mut halting, pid);
            detach(&halting);
            return match left {
                None => Ok(None),
                Some(left) => {
                    Err(Error::not_possible(format!("process {pid} cannot be counted now"))
                        .because(format!("it has changed meanwhile; {left}")))
                }
            };
        }
        Err(_) if halting.is_over() => return Err(living.ended("while it was stopped")),
        Err(why) => {
            let left = release(&mut halting, pid);
            let why = left.map_or(why.to_string(), |left| format!("{why}; {left}"));
            detach(&halting);
            return Err(Error::not_possible(format!("process {pid} cannot be counted now"))
                .because(why)
                .hint("try again, or count from its start: `tdtool count -- COMMAND`"));
        }
    }
    let begin = Instant::now();
    let mut interrupted = None;
    run(&mut halting, || {
        interrupted = signals.next().map(|(signal, _)| signal);
        begin.elapsed() < window && interrupted.is_none()
    });
    let (wall, ended) = (begin.elapsed(), halting.is_over());
    let begin = Instant::now();
    let remains = halt_all(&mut halting).err();
    let (mut still_mapped, mut ran) = (None, Duration::ZERO);
    if remains.is_none() {
        named(&mut halting);
        halting.following.follower.leave();
        still_mapped = vacated(&mut halting, &mut ran);
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
/// all.
fn vacated(halting: &mut Halting<'_>, ran: &mut Duration) -> Option<Obstacle> {
    let first = Instant::now();
    let mut pauses = Pauses::default();
    loop {
        let refused = vacate(halting)?;
        if refused.lasts() || first.elapsed() > VACATING {
            return Some(refused);
        }
        let pause = pauses.next(first.elapsed());
        let begin = Instant::now();
        run(halting, || begin.elapsed() < pause);
        *ran += begin.elapsed();
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
        let pause = pauses.next(first.elapsed());
        let begin = Instant::now();
        run(halting, || begin.elapsed() < pause);
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
        let pause = pauses.next(first.elapsed());
        let begin = Instant::now();
        run(halting, || begin.elapsed() < pause);
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
    halting.following.follower.mapped(&tracee);
    Ok(Changed::All)
}
