//! Exact entry counts of the blocks of chosen functions, in a run of a command.
//!
//! | file | concern |
//! |---|---|
//! | `request` | what was found of the functions |
//! | `counting` | the probes: a counter for every block |
//! | `result` | counters → counts |

mod counting;
mod request;
mod result;

use crate::patch::{Patcher, targets};
use crate::process::follow;
use counting::Counting;
use pmu::Command;
use pmu::perf::Signals;
use tma::Result;

pub use crate::patch::Wanted;
pub use request::{BlockCount, BranchCount, Counts, EdgeCount, FunctionCounts, LoopCount};

/// Runs the command once and counts the blocks of these functions in it and in all that it starts.
///
/// # Errors
/// The command cannot be started or traced.
pub fn count(command: &Command, wanted: &[Wanted], signals: &Signals) -> Result<Counts> {
    let mut patcher = Patcher::new(Counting, targets(wanted));
    let followed = follow(command, &mut patcher, signals)?;
    Ok(result::counts(patcher, wanted, &followed))
}
