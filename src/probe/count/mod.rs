//! Exact entry counts of the blocks of chosen functions, in a run of a command.
//!
//! | file | concern |
//! |---|---|
//! | `request` | which functions, and what was found of them |
//! | `target` | the files of those functions, and their facts |
//! | `instance` | one file in one process: mapped, patched, its counters |
//! | `mapped` | memory of the program's own for counters and trampolines |
//! | `patcher` | what is done at the events of the command |
//! | `result` | counters → counts |

mod instance;
mod mapped;
mod patcher;
mod request;
mod result;
mod target;

use crate::process::follow;
use patcher::Patcher;
use pmu::Command;
use pmu::perf::Signals;
pub use request::{BlockCount, BranchCount, Counts, EdgeCount, FunctionCounts, LoopCount, Wanted};
use tma::Result;

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
    let mut patcher = Patcher::new(target::targets(wanted, samples));
    let followed = follow(command, &mut patcher, signals)?;
    Ok(result::counts(patcher, wanted, &followed))
}
