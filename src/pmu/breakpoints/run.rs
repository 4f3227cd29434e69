//! Counts a command from its first instruction, or a live process for a while.

use super::addresses::{addresses, family, is_fork, threads};
use super::outcome::{Coverage, Outcome};
use super::refused::refused;
use super::request::{Ask, Limits, Site, TICK};
use super::time_windows::TimeWindows;
use super::traced_command::TracedCommand;
use crate::Command;
use crate::perf::{Breakpoint, Child, Signals, raise_file_limit, seize};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use tma::error::Result;

/// Time between searches for newly mapped files.
const SEARCH: Duration = Duration::from_millis(20);

/// Counting without tracing, in windows of time.
struct Counting<'a> {
    sites: &'a [Site],
    windows: TimeWindows,
    known: HashSet<(i32, usize)>,
    searched: Instant,
}

impl<'a> Counting<'a> {
    fn new(sites: &'a [Site], limits: Limits, cost: Duration) -> Self {
        let windows = TimeWindows::new(sites.len(), limits, cost);
        Self { sites, windows, known: HashSet::new(), searched: Instant::now() }
    }

    /// Sets the breakpoints whose files are mapped in `pid` now; whether all are set.
    fn set(&mut self, pid: i32, coverage: Coverage) -> Result<bool> {
        for (at, address) in addresses(pid, self.sites).into_iter().enumerate() {
            let Some(address) = address else { continue };
            if !self.known.insert((pid, at)) {
                continue;
            }
            for thread in threads(pid) {
                match Breakpoint::open(thread, address) {
                    Ok(breakpoint) => self.windows.add(at, breakpoint, coverage),
                    // The thread has ended.
                    Err(Errno::ESRCH) => {}
                    Err(errno) => return Err(refused(errno)),
                }
            }
        }
        Ok((0..self.sites.len()).all(|at| self.windows.is_open(at)))
    }

    /// Finds sites in files that were mapped since, in the process and its descendants.
    fn search(&mut self, pid: i32) {
        if self.searched.elapsed() < SEARCH {
            return;
        }
        self.searched = Instant::now();
        let wanted = |member: &i32| *member == pid || !is_fork(*member);
        for member in family(pid).into_iter().filter(wanted) {
            // One that has ended meanwhile, or whose debug registers are in use, is not counted.
            let _ = self.set(member, Coverage::Late);
        }
    }
}

/// Runs `command` and counts how often each place is reached, until a signal ends it.
///
/// # Errors
/// The command cannot be started; breakpoints are refused.
pub fn of_command(command: &Command, ask: Ask<'_>, signals: &Signals) -> Result<Outcome> {
    let mut child = Child::prepare(command)?;
    raise_file_limit();
    // Requires a kernel that permits tracing of children and has events that stop a thread.
    let traced = seize(child.pid).is_ok();
    if traced {
        let traced = TracedCommand::new(ask, child.pid);
        let outcome = child.start().and_then(|()| traced.run(&mut child, signals));
        return ended(child, outcome);
    }
    child.start()?;
    let mut counting = Counting::new(ask.sites, ask.limits, ask.cost);
    let mut interrupted = None;
    let mut outcome = counting.set(child.pid, Coverage::Late);
    while outcome.is_ok() && !child.has_ended() {
        std::thread::sleep(TICK);
        counting.windows.tick();
        counting.search(child.pid);
        interrupted = signals.forward(child.pid).or(interrupted);
        outcome = Ok(true);
    }
    ended(child, outcome.map(|_| counting.windows.finish(interrupted)))
}

/// Adds how the command ended; kills it if it cannot be counted.
fn ended(mut child: Child, outcome: Result<Outcome>) -> Result<Outcome> {
    if outcome.is_err() {
        let _ = kill(Pid::from_raw(child.pid), Signal::SIGKILL);
    }
    let exit = child.reap().map(|(exit, _)| exit);
    outcome.map(|outcome| Outcome { exit, ..outcome })
}

/// Counts in process `pid` for `window`. A hit takes `cost`.
///
/// # Errors
/// The process has ended; breakpoints are refused.
pub fn of_process(
    pid: i32,
    sites: &[Site],
    (limits, cost): (Limits, Duration),
    window: Duration,
    signals: &Signals,
) -> Result<Outcome> {
    let mut counting = Counting::new(sites, limits, cost);
    counting.set(pid, Coverage::Late)?;
    let begin = Instant::now();
    let mut interrupted = None;
    while begin.elapsed() < window && interrupted.is_none() && !threads(pid).is_empty() {
        std::thread::sleep(TICK);
        counting.windows.tick();
        interrupted = signals.next().map(|(signal, _)| signal);
    }
    Ok(counting.windows.finish(interrupted))
}
