//! What single instructions do, in bursts: records of each of their executions, in order, while a gate is
//! open.
//!
//! | file | concern |
//! |---|---|
//! | `request` | how much is recorded, and what was |
//! | `observing` | the probes: an observer for every block with a wish |
//! | `gate` | when records are taken |
//! | `live` | a window of a live process |
//! | `memory` | what addresses in them may point to |
//! | `heap`, `callers` | what memory the program was given, and by whose calls |
//!
//! Gates open at random times, so that the cost of records is bounded and bursts are a sample of the
//! run. They are opened and read from outside, without stopping the program.

mod callers;
mod gate;
mod heap;
mod live;
mod memory;
mod observing;
mod request;

use crate::facts::Function;
use crate::patch::{Patcher, Wanted, targets};
use crate::plan::Wish;
use observing::Observing;
use pmu::Command;
use pmu::perf::Signals;
use tma::Result;

pub use crate::patch::{Unprobed, Window};
pub use callers::Caller;
pub use heap::{Allocation, Heap};
pub use live::record_process;
pub use request::{Burst, Observed, Pace, Record, Recorded, Region};

/// Runs the command once and records what instructions of these functions do, in it and in all that it
/// starts. `wishes` gives the instructions of a function (with its number in `wanted`).
///
/// # Errors
/// The command cannot be started or traced.
pub fn record(
    command: &Command,
    wanted: &[Wanted],
    wishes: &dyn Fn(usize, &Function) -> Vec<Wish>,
    pace: Pace,
    signals: &Signals,
) -> Result<Recorded> {
    let targets = targets(wanted, &[], signals);
    let observing = Observing::new(&targets, wishes, pace, false);
    let mut patcher = Patcher::new(observing, targets);
    let followed = patcher.follow(command, signals)?;
    Ok(observing::recorded(patcher, &followed))
}
