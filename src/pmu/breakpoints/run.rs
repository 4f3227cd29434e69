//! A run of a command that is counted from its first instruction, or a window of a live process.

use super::follow::Follow;
use super::outcome::{Known, Outcome};
use super::place::{addresses, family, is_fork, threads};
use super::refused::refused;
use super::request::{Ask, Limits, Site, TICK};
use super::tally::Tally;
use crate::Command;
use crate::perf::{Breakpoint, Child, Signals, raise_file_limit, seize};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use tma::error::Result;

/// Time between looks at what has been mapped since.
const LOOK: Duration = Duration::from_millis(20);
/// Who is counted already, and where.
struct Counting<'a> {
    sites: &'a [Site],
    tally: Tally,
    known: HashSet<(i32, usize)>,
    looked: Instant,
}

impl<'a> Counting<'a> {
    fn new(sites: &'a [Site], limits: Limits, cost: Duration) -> Self {
        let tally = Tally::new(sites.len(), limits, cost);
        Self { sites, tally, known: HashSet::new(), looked: Instant::now() }
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

    /// Looks now and then for files that were mapped since, in the process and its descendants.
    fn look(&mut self, pid: i32) {
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        let wanted = |member: &i32| *member == pid || !is_fork(*member);
        for member in family(pid).into_iter().filter(wanted) {
            // One that has gone meanwhile, or whose registers are taken, is not counted.
            let _ = self.set(member, Known::Late);
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
    // Needs a kernel that lets us trace our own children, and knows events that stop a thread.
    let traced = seize(child.pid).is_ok();
    if traced {
        let follow = Follow::new(ask, child.pid);
        let outcome = child.start().and_then(|()| follow.run(&mut child, signals));
        return ended(child, outcome);
    }
    child.start()?;
    let mut counting = Counting::new(ask.sites, ask.limits, ask.cost);
    let mut interrupted = None;
    let mut outcome = counting.set(child.pid, Known::Late);
    while outcome.is_ok() && !child.has_ended() {
        std::thread::sleep(TICK);
        counting.tally.tick();
        counting.look(child.pid);
        interrupted = signals.forward(child.pid).or(interrupted);
        outcome = Ok(true);
    }
    ended(child, outcome.map(|_| counting.tally.finish(interrupted)))
}

/// Adds how the command ended; one that could not be counted is ended.
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
/// The process has gone; breakpoints are refused.
pub fn of_process(
    pid: i32,
    sites: &[Site],
    (limits, cost): (Limits, Duration),
    window: Duration,
    signals: &Signals,
) -> Result<Outcome> {
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
