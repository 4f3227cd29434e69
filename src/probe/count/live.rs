//! Counts of the blocks of a live process in a time window.

use super::counting::Counting;
use super::request::Counts;
use super::result::{self, Run};
use super::uncounted::Uncounted;
use crate::patch::{Patcher, Progress, Wanted, Window, watched};
use crate::process::Watched;
use pmu::perf::Signals;
use std::collections::BTreeSet;
use std::time::Duration;
use tma::Result;

/// Counts the blocks of these functions in a process and those that it forks, and restores its
/// code. Trampolines and counters stay mapped if an interrupted context may continue there. The
/// process runs untraced until everything is planned.
///
/// # Errors
/// The process cannot be traced or stopped, or has ended.
pub fn count_process(
    pid: i32,
    wanted: &[Wanted],
    window: Duration,
    signals: &Signals,
    progress: Progress<'_>,
) -> Result<Counts> {
    let window = Window { pid, length: window, signals };
    let collect = |patcher: Patcher<Counting>, watched: &Watched| {
        let run = Run::of_window(watched, patcher.restored);
        result::counts(patcher, wanted, run)
    };
    let found = watched(&window, wanted, |_| Counting::new(true, &[]), &collect, progress)?;
    Ok(found.unwrap_or_else(|signal| interrupted(wanted, signal)))
}

/// The result without any count.
fn interrupted(wanted: &[Wanted], signal: i32) -> Counts {
    Counts {
        functions: wanted.iter().map(|_| Err(Uncounted::Interrupted)).collect(),
        wall: Duration::ZERO,
        exit: None,
        interrupted: Some(signal),
        unplanned: true,
        remains: false,
        probes: 0,
        trampolines: Vec::new(),
        files: BTreeSet::new(),
        notes: Vec::new(),
    }
}
