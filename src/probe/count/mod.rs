//! Exact entry counts of the blocks of chosen functions, in a run of a command or a window of a process.
//!
//! | file | concern |
//! |---|---|
//! | `request` | which functions, and what was found of them |
//! | `target` | the files of those functions, and their facts |
//! | `instance` | one file in one process: mapped, patched, its counters |
//! | `patched` | the code of that process: written over, checked, put back |
//! | `tally` | what was counted by images that have ended |
//! | `origins` | from trampolines to the original code |
//! | `mapped` | memory of the program's own for counters and trampolines |
//! | `patcher` | what is done at the events of the command |
//! | `result` | counters → counts |

mod instance;
mod mapped;
mod origins;
mod patched;
mod patcher;
mod request;
mod result;
mod tally;
mod target;

use crate::process::{follow, watch};
pub use origins::Trampolines;
use patcher::Patcher;
use pmu::Command;
use pmu::perf::Signals;
pub use request::{BlockCount, BranchCount, Counts, EdgeCount, FunctionCounts, LoopCount, Wanted};
use result::Run;
use std::time::Duration;
use tma::Result;

/// Runs the command once and counts the blocks of these functions in it and in all that it starts.
///
/// # Errors
/// The command cannot be started or traced.
pub fn count(command: &Command, wanted: &[Wanted], signals: &Signals) -> Result<Counts> {
    let mut patcher = Patcher::new(target::targets(wanted));
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
    let mut patcher = Patcher::new(target::targets(wanted));
    let watched = watch(pid, &mut patcher, window, signals)?;
    Ok(result::counts(patcher, wanted, Run::of_window(&watched)))
}
