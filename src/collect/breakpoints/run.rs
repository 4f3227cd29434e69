//! A run of a command that is counted from its first instruction, or a window of a live process.

use super::place::{addresses, family, is_fork, threads};
use super::tally::{Known, Tally};
use super::{Limits, Outcome, Site};
use crate::collect::Command;
use crate::collect::perf::{Breakpoint, Child, Signals};
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::libc::PTRACE_EVENT_EXEC;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Time between readings.
const TICK: Duration = Duration::from_millis(1);
/// Time between looks at what has been mapped since.
const LOOK: Duration = Duration::from_millis(20);
/// System calls of the loader that are followed until the files are mapped; a dynamic program makes
/// about ten for each library.
const MOST_CALLS: u32 = 1_000;

/// Who is counted already, and where.
struct Counting<'a> {
    sites: &'a [Site],
    tally: Tally,
    known: HashSet<(i32, usize)>,
    /// A signal that came meanwhile.
    interrupted: Option<i32>,
    looked: Instant,
}

impl<'a> Counting<'a> {
    fn new(sites: &'a [Site], limits: Limits, cost: Duration) -> Self {
        let tally = Tally::new(sites.len(), limits, cost);
        Self { sites, tally, known: HashSet::new(), interrupted: None, looked: Instant::now() }
    }

    /// Hands signals on to the command, but for those that it has got from the terminal itself.
    fn hand_on(&mut self, pid: Pid, signals: &Signals) {
        let Some((signal, from_terminal)) = signals.next() else { return };
        self.interrupted = Some(signal);
        if !from_terminal && let Ok(signal) = Signal::try_from(signal) {
            let _ = kill(pid, signal);
        }
    }

    /// Sets the breakpoints that can be set in `pid` now. Whether all are.
    fn set(&mut self, pid: i32, known: Known) -> Result<bool> {
        for (at, address) in addresses(pid, self.sites).into_iter().enumerate() {
            let Some(address) = address else { continue };
            if !self.known.insert((pid, at)) {
                continue;
            }
            for thread in threads(pid) {
                match Breakpoint::open(thread, address) {
                    Ok(breakpoint) => self.tally.add(at, breakpoint, known),
                    // The thread has ended.
                    Err(Errno::ESRCH) => {}
                    Err(errno) => return Err(refused(errno)),
                }
            }
        }
        Ok((0..self.sites.len()).all(|at| self.tally.is_open(at)))
    }

    /// Looks now and then for files that were mapped since, in descendants of the process and, if
    /// it is `with` them, itself.
    fn look(&mut self, pid: i32, with: bool) {
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        let wanted = |member: &i32| if *member == pid { with } else { !is_fork(*member) };
        for member in family(pid).into_iter().filter(wanted) {
            // One that has gone meanwhile, or whose registers are taken, is not counted.
            let _ = self.set(member, Known::Late);
        }
    }
}

/// Why breakpoints cannot be had.
pub(super) fn refused(errno: Errno) -> Error {
    let error = Error::not_possible("execute breakpoints cannot be set here");
    match errno {
        Errno::ENOSPC => error
            .because("the processor's four debug registers are in use")
            .hint("end the debugger or perf that uses them"),
        Errno::EACCES | Errno::EPERM => error
            .because("the kernel does not let this user open perf events")
            .hint("sudo sysctl kernel.perf_event_paranoid=2, or leave --counts out"),
        other => error.because(other.desc()).hint("leave --counts out"),
    }
}

/// Runs `command` and counts how often each of at most four `sites` is reached. A hit takes `cost`.
///
/// # Errors
/// The command cannot be started; breakpoints are refused.
pub fn of_command(
    command: &Command,
    sites: &[Site],
    limits: Limits,
    cost: Duration,
) -> Result<Outcome> {
    let signals = Signals::catch()?;
    let mut child = Child::prepare(command)?;
    let pid = Pid::from_raw(child.pid);
    let traced = ptrace::seize(pid, ptrace::Options::PTRACE_O_TRACEEXEC).is_ok();
    child.start()?;
    let mut counting = Counting::new(sites, limits, cost);
    let set = match traced {
        true => load(pid, &signals, &mut counting),
        // A kernel that lets nobody trace: counted from when it is seen to run.
        false => counting.set(child.pid, Known::Late).map(|_| ()),
    };
    if let Err(error) = set {
        let _ = kill(pid, Signal::SIGKILL);
        child.reap();
        return Err(error);
    }
    while !child.has_ended() {
        std::thread::sleep(TICK);
        counting.tally.tick();
        counting.look(child.pid, true);
        counting.hand_on(pid, &signals);
    }
    let interrupted = counting.interrupted;
    let outcome = counting.tally.finish(interrupted);
    let exit = child.reap().map(|(exit, _)| exit);
    Ok(Outcome { exit, ..outcome })
}

/// Follows a traced command from its exec until all files are mapped, and lets it go.
fn load(pid: Pid, signals: &Signals, counting: &mut Counting<'_>) -> Result<()> {
    let mut set = Ok(false);
    let mut executed = false;
    for _ in 0..MOST_CALLS {
        let signal = match stop_of(pid, signals, counting) {
            Ok(WaitStatus::PtraceEvent(_, _, PTRACE_EVENT_EXEC)) => {
                executed = true;
                None
            }
            Ok(WaitStatus::Stopped(_, Signal::SIGTRAP)) => None,
            Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
            Ok(WaitStatus::PtraceEvent(..) | WaitStatus::PtraceSyscall(_)) => None,
            // It has ended; `reap` tells.
            _ => return Ok(()),
        };
        if executed {
            set = counting.set(pid.as_raw(), Known::Whole);
        }
        if executed && !matches!(set, Ok(false)) {
            let _ = ptrace::detach(pid, signal);
            return set.map(|_| ());
        }
        if ptrace::syscall(pid, signal).is_err() {
            return Ok(());
        }
    }
    // What is mapped by now is counted, the rest when it is found.
    if stop_of(pid, signals, counting).is_ok() {
        let _ = ptrace::detach(pid, None);
    }
    set.map(|_| ())
}

/// Waits for the next stop of a traced command. What is mapped already is counted meanwhile, in
/// windows as ever, so are its children, and signals are handed on: a file may be mapped late or
/// never, and then the command runs on between two system calls for as long as it likes.
fn stop_of(pid: Pid, signals: &Signals, counting: &mut Counting<'_>) -> nix::Result<WaitStatus> {
    /// Most system calls of the loader are over sooner.
    const AT_ONCE: Duration = Duration::from_micros(200);
    let begin = Instant::now();
    loop {
        match waitpid(pid, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
            other => return other,
        }
        if begin.elapsed() < AT_ONCE {
            std::thread::yield_now();
        } else {
            std::thread::sleep(TICK);
            counting.tally.tick();
            counting.look(pid.as_raw(), false);
            counting.hand_on(pid, signals);
        }
    }
}

/// Counts in process `pid` for `window`. A hit takes `cost`.
///
/// # Errors
/// The process has gone; breakpoints are refused.
pub fn of_process(
    pid: i32,
    sites: &[Site],
    (limits, cost): (Limits, Duration),
    window: Duration,
) -> Result<Outcome> {
    let signals = Signals::catch()?;
    let mut counting = Counting::new(sites, limits, cost);
    counting.set(pid, Known::Late)?;
    let begin = Instant::now();
    let mut interrupted = None;
    while begin.elapsed() < window && interrupted.is_none() && !threads(pid).is_empty() {
        std::thread::sleep(TICK);
        counting.tally.tick();
        interrupted = signals.next().map(|(signal, _)| signal);
    }
    Ok(counting.tally.finish(interrupted))
}
