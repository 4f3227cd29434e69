//! Counts a live process for a while.

use super::addresses::{addresses, threads};
use super::outcome::{Coverage, Outcome};
use super::refused::refused;
use super::request::{Limits, Site, TICK};
use super::time_windows::TimeWindows;
use crate::perf::{Breakpoint, Signals};
use nix::errno::Errno;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use tma::error::Result;

/// Counting without tracing, in windows of time.
struct Counting<'a> {
    sites: &'a [Site],
    windows: TimeWindows,
    known: HashSet<(i32, usize)>,
}

impl<'a> Counting<'a> {
    fn new(sites: &'a [Site], limits: Limits, cost: Duration) -> Self {
        let windows = TimeWindows::new(sites.len(), limits, cost);
        Self { sites, windows, known: HashSet::new() }
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
