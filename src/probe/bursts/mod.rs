//! Bursts: records of each execution of chosen instructions, in order, while a gate is open.
//!
//! | file | concern |
//! |---|---|
//! | `request` | limits of a recording, and its result |
//! | `observing` | the probes: an observer for every block with a request |
//! | `gate` | when records are taken; mappings that recorded addresses may point to |
//! | `windows` | several kinds in windows of one run |
//! | `heap` | allocated memory, and the callers of its allocations |
//!
//! Gates open at random times: bursts are a sample of the run at bounded cost. They are opened and
//! read without stopping the program.

mod gate;
mod heap;
mod observing;
mod request;
mod windows;

use crate::facts::Function;
use crate::patch::{Blocks, Patcher, Progress, Wanted, notes, targets, watched};
use crate::plan::Request;
use crate::process::Watched;
use observing::Observing;
use pmu::Command;
use pmu::perf::Signals;
use tma::Result;

pub use crate::patch::{Unprobed, Window};
pub use heap::{Allocation, Caller, Heap};
pub use request::{Burst, Observed, Pace, Record, Recorded, Region};
pub use windows::{Spread, Windows};

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
    let targets = targets(wanted, Blocks::All, signals);
    let observing = Observing::new(&targets, requests, pace, false);
    let mut patcher = Patcher::new(observing, targets);
    let followed = patcher.follow(command, signals)?;
    Ok(observing::recorded(patcher, &followed))
}

/// Records what instructions do in a window of a process and of those that it forks, and restores
/// its code. `requests` gives the instructions of a function, by its index in `wanted`. `Err`: the
/// signal that interrupted the analysis.
///
/// # Errors
/// The process cannot be traced or stopped, or has ended.
pub fn record_process(
    window: &Window<'_>,
    wanted: &[Wanted],
    requests: &dyn Fn(usize, &Function) -> Vec<Request>,
    pace: Pace,
    progress: Progress<'_>,
) -> Result<std::result::Result<Recorded, i32>> {
    let collect = |patcher: Patcher<Observing>, watched: &Watched| {
        let notes = notes(watched, patcher.restored);
        Recorded { notes, ..observing::recorded_of(patcher, watched) }
    };
    let probes = |targets: &[_]| Observing::new(targets, requests, pace, true);
    watched(window, wanted, probes, &collect, progress)
}
