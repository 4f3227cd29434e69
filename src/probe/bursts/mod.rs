//! Bursts: records of each execution of chosen instructions, in order, while a gate is open.
//!
//! | file | concern |
//! |---|---|
//! | `request` | limits of a recording, and its result |
//! | `observing` | the probes: an observer for every block with a request |
//! | `gate` | when records are taken |
//! | `live` | a window of a live process |
//! | `memory` | mappings that recorded addresses may point to |
//! | `heap`, `callers` | allocated memory, and the callers of its allocations |
//!
//! Gates open at random times: bursts are a sample of the run at bounded cost. They are opened and
//! read without stopping the program.

mod callers;
mod gate;
mod heap;
mod live;
mod memory;
mod observing;
mod request;

use crate::facts::Function;
use crate::patch::{Patcher, Wanted, targets};
use crate::plan::Request;
use observing::Observing;
use pmu::Command;
use pmu::perf::Signals;
use tma::Result;

pub use crate::patch::{Unprobed, Window};
pub use callers::Caller;
pub use heap::{Allocation, Heap};
pub use live::record_process;
pub use request::{Burst, Observed, Pace, Record, Recorded, Region};

/// Runs the command once and records what instructions do, in it and in all that it starts.
/// `requests` gives the instructions of a function, by its index in `wanted`.
///
/// # Errors
/// The command cannot be started or traced.
pub fn record(
    command: &Command,
    wanted: &[Wanted],
    requests: &dyn Fn(usize, &Function) -> Vec<Request>,
    pace: Pace,
    signals: &Signals,
) -> Result<Recorded> {
    let targets = targets(wanted, &[], signals);
    let observing = Observing::new(&targets, requests, pace, false);
    let mut patcher = Patcher::new(observing, targets);
    let followed = patcher.follow(command, signals)?;
    Ok(observing::recorded(patcher, &followed))
}
