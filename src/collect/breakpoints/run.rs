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
}

impl Counting<'_> {
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

    /// Looks for files that were mapped since, in the process and its descendants.
    fn look(&mut self, pid: i32) {
        for member in family(pid).into_iter().filter(|m| *m == pid || !is_fork(*m)) {
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
    let mut counting =
        Counting { sites, tally: Tally::new(sites.len(), limits, cost), known: HashSet::new() };
    let set = match traced {
        true => load(pid, &mut counting),
        // A kernel that lets nobody trace: counted from when it is seen to run.
        false => counting.set(child.pid, Known::Late).map(|_| ()),
    };
    if let Err(error) = set {
        let _ = kill(pid, Signal::SIGKILL);
        child.reap();
        return Err(error);
    }
    let mut looked = Instant::now();
    let mut interrupted = None;
    while !child.has_ended() {
        std::thread::sleep(TICK);
        counting.tally.tick();
        if looked.elapsed() > LOOK {
            counting.look(child.pid);
            looked = Instant::now();
        }
        if let Some((signal, from_terminal)) = signals.next() {
            interrupted = Some(signal);
            if !from_terminal && let Ok(signal) = Signal::try_from(signal) {
                let _ = kill(pid, signal);
            }
        }
    }
    let outcome = counting.tally.finish(interrupted);
    let exit = child.reap().map(|(exit, _)| exit);
    Ok(Outcome { exit, ..outcome })
}

/// Follows a traced command from its exec until all files are mapped, and lets it go.
fn load(pid: Pid, counting: &mut Counting<'_>) -> Result<()> {
    let mut set = Ok(false);
    let mut executed = false;
    for _ in 0..MOST_CALLS {
        let signal = match waitpid(pid, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::PtraceEvent(_, _, PTRACE_EVENT_EXEC)) => {
                executed = true;
                None
            }
            Ok(WaitStatus::Stopped(_, Signal::SIGTRAP)) => None,
            Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
            Ok(WaitStatus::PtraceEvent(..) | WaitStatus::PtraceSyscall(_)) => None,
            Err(Errno::EINTR) => continue,
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
    if waitpid(pid, Some(WaitPidFlag::__WALL)).is_ok() {
        let _ = ptrace::detach(pid, None);
    }
    set.map(|_| ())
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
    let mut counting =
        Counting { sites, tally: Tally::new(sites.len(), limits, cost), known: HashSet::new() };
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
