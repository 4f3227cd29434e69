//! A live process, watched for a while: its threads are stopped together at the beginning and at the
//! end, and run freely between.
//!
//! Every thread is stopped where the kernel looks for signals (PTRACE_INTERRUPT), never before the
//! delivery of one, so that no signal is held or lost; one that is stopped at something else is
//! resumed and asked again. What is done at the end needs no thread: bytes are written by
//! `/proc/PID/mem`.

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

/// So long all threads may take to stop at the beginning.
const STOPPING: Duration = Duration::from_secs(2);
/// So long what was in the way at the beginning may be there again and again.
const TRYING: Duration = Duration::from_secs(2);
/// So long it is tried to take away memory of ours at the end.
const VACATING: Duration = Duration::from_millis(50);
/// So long what needs no stop is done between two looks at the threads.
const SLICE: Duration = Duration::from_millis(1);

/// How the time went.
#[derive(Debug, Clone)]
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
    /// Why it is not as it was.
    pub remains: Option<Obstacle>,
    /// Why memory of ours stays in it.
    pub kept: Option<Obstacle>,
}

/// Watches a process for `window`; `None` if it is not as it was looked at, and nothing was done. What
/// still waits in the kernel at the end is traced until this thread ends.
///
/// # Errors
/// It cannot be traced or stopped; nothing of it is changed then.
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
    let (mut kept, mut ran) = (None, Duration::ZERO);
    if remains.is_none() {
        named(&mut halting);
        halting.following.follower.leave();
        kept = vacated(&mut halting, &mut ran);
    }
    detach(&halting);
    stopped += begin.elapsed().saturating_sub(ran);
    let tasks = halting.following.tasks.len() as u32 + halting.following.created;
    let executed = halting.executed;
    Ok(Some(Watched { wall, stopped, interrupted, tasks, executed, ended, remains, kept }))
}

/// Which stopped thread has which memory of its own, for what they have logged.
fn named(halting: &mut Halting<'_>) {
    let following = &mut halting.following;
    for (tid, process) in &following.tasks {
        if let Ok(registers) = ptrace::getregs(Pid::from_raw(*tid)) {
            following.follower.left(*process, *tid, registers.fs_base);
        }
    }
}

/// Takes away memory of ours after the code is as it was; why some of it stays. What was interrupted in it may
/// come back soon, as from the handler of a signal: the process runs on for moments, `ran` in all.
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

/// Takes away what was mapped for code that will not be changed, by a thread that is stopped where it can make
/// system calls; why something is left.
fn release(halting: &mut Halting<'_>, pid: i32) -> Option<Obstacle> {
    let first = Instant::now();
    let mut pauses = Pauses::default();
    while !halting.is_over() {
        if let Some(tracee) = halting.fit(pid) {
            let left = halting.following.follower.release(&tracee);
            return (left > 0).then_some(Obstacle::Left(left));
        }
        if first.elapsed() > TRYING {
            return Some(Obstacle::LeftAll);
        }
        let pause = pauses.next(first.elapsed());
        let begin = Instant::now();
        run(halting, || begin.elapsed() < pause);
        // Some of them are enough.
        let _ = halting.halt(STOPPING);
    }
    None
}

/// Lets all threads run as long as `more`, or until they have ended.
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

/// Stops a process and has it changed; tries again what may be in the way by chance: a child of
/// vfork(2), say. False if it is not as it was looked at; why nothing could be done.
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

/// What was done to a stopped process.
enum Changed {
    /// It is not as it was looked at.
    Not,
    /// What is to be filled is mapped.
    Mapped,
    /// Its code.
    All,
}

/// Has a stopped process changed, if it is as it was looked at: in two steps, if much is to be written to which
/// nothing leads yet.
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
