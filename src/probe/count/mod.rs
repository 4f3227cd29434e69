//! Exact entry counts of the blocks of chosen functions, in a run of a command or a window of a process.
//!
//! | file | concern |
//! |---|---|
//! | `live` | a window of a live process |
//! | `request` | the result |
//! | `counting` | the probes: a counter for every block |
//! | `tally` | counts of images that have ended |
//! | `result` | counters → counts |
//! | `uncounted` | why there is no count |
//! | `faults` | blocks left before their probes by signals of the processor |

mod counting;
mod faults;
mod live;
mod request;
mod result;
mod tally;
mod uncounted;

use crate::patch::{Patcher, targets};
use counting::Counting;
use pmu::Command;
use pmu::perf::Signals;
use result::Run;
use tma::Result;

pub use crate::patch::{Progress, Trampolines, Unprobed, Wanted};
pub use live::count_process;
pub use request::{BlockCount, BranchCount, Counts, EdgeCount, FunctionCounts, LoopCount};
pub use uncounted::Uncounted;

/// Runs the command once and counts the blocks of these functions in it and in all that it starts.
///
/// # Errors
/// The command cannot be started or traced.
pub fn count(command: &Command, wanted: &[Wanted], signals: &Signals) -> Result<Counts> {
    count_sampled(command, wanted, &[], signals)
}

/// As [`count`], but hot blocks whose counts follow from others have no probe. `samples`: by
/// function, first addresses of blocks and their samples in an earlier run.
///
/// # Errors
/// As [`count`].
pub fn count_sampled(
    command: &Command,
    wanted: &[Wanted],
    samples: &[Vec<(u64, u64)>],
    signals: &Signals,
) -> Result<Counts> {
    let targets = targets(wanted, samples, signals);
    let mut patcher = Patcher::new(Counting::new(false, &targets), targets);
    let followed = patcher.follow(command, signals)?;
    Ok(result::counts(patcher, wanted, Run::of_command(&followed)))
}
