//! Exact entry counts of the blocks of chosen functions, in a run of a command or a window of a process.
//!
//! | file | concern |
//! |---|---|
//! | `request` | what was found of the functions |
//! | `counting` | the probes: a counter for every block |
//! | `tally` | what was counted by images that have ended |
//! | `result` | counters → counts |

mod counting;
mod request;
mod result;
mod tally;

use crate::patch::{Patcher, targets};
use crate::process::{follow, watch};
use counting::Counting;
use pmu::Command;
use pmu::perf::Signals;
use result::Run;
use std::time::Duration;
use tma::Result;

pub use crate::patch::{Trampolines, Wanted};
pub use request::{BlockCount, BranchCount, Counts, EdgeCount, FunctionCounts, LoopCount};

/// Runs the command once and counts the blocks of these functions in it and in all that it starts.
///
/// # Errors
/// The command cannot be started or traced.
pub fn count(command: &Command, wanted: &[Wanted], signals: &Signals) -> Result<Counts> {
    count_sampled(command, wanted, &[], signals)
}

/// As [`count`], with fewer probes: `samples` has the first addresses of blocks with samples of an
/// earlier run, and how many, by function. Hot blocks whose counts follow from others have no probe.
///
/// # Errors
/// As [`count`].
pub fn count_sampled(
    command: &Command,
    wanted: &[Wanted],
    samples: &[Vec<(u64, u64)>],
    signals: &Signals,
) -> Result<Counts> {
    let mut patcher = Patcher::new(Counting::new(false), targets(wanted, samples));
    let followed = follow(command, &mut patcher, signals)?;
    Ok(result::counts(patcher, wanted, Run::of_command(&followed)))
}

/// Counts the blocks of these functions in process `pid`, and in the processes that it forks, for
/// `window`. Its code is as it was afterwards; trampolines and counters stay mapped in it, since what it
/// has interrupted may continue there.
///
/// # Errors
/// The process cannot be traced or stopped.
pub fn count_process(
    pid: i32,
    wanted: &[Wanted],
    window: Duration,
    signals: &Signals,
) -> Result<Counts> {
    let mut patcher = Patcher::new(Counting::new(true), targets(wanted, &[]));
    let watched = watch(pid, &mut patcher, window, signals)?;
    Ok(result::counts(patcher, wanted, Run::of_window(&watched)))
}
