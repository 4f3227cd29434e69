//! Exact entry counts of the blocks of chosen functions, in a run of a command or a window of a process.
//!
//! | file | concern |
//! |---|---|
//! | `counts` | the result; why there is no count |
//! | `counting` | the probes: a counter for every block; counts of images that have ended |
//! | `windowed` | windows of a run of a command |
//! | `result` | counters → counts; blocks left before their probes by signals of the processor |

mod counting;
mod counts;
mod result;
mod windowed;

use crate::patch::{Patcher, Window, targets, watched};
use crate::process::Watched;
use counting::{Counting, Running};
use pmu::Command;
use pmu::perf::Signals;
use result::{Found, Run};
use std::time::Duration;
use tma::Result;

pub use crate::patch::{Blocks, Progress, Trampolines, Unprobed, Wanted};
pub use counts::{
    BlockCount, BranchCount, Counts, EdgeCount, FunctionCounts, LoopCount, Uncounted,
};
pub use windowed::count_windows;

/// Runs the command once and counts the blocks of these functions in it and in all that it starts.
///
/// # Errors
/// The command cannot be started or traced.
pub fn count(command: &Command, wanted: &[Wanted], signals: &Signals) -> Result<Counts> {
    count_blocks(command, wanted, Blocks::All, signals)
}

/// As [`count`], of some blocks.
///
/// # Errors
/// As [`count`].
pub fn count_blocks(
    command: &Command,
    wanted: &[Wanted],
    blocks: Blocks,
    signals: &Signals,
) -> Result<Counts> {
    let targets = targets(wanted, blocks, signals);
    let mut patcher = Patcher::new(Counting::new(Running::Not, &targets), targets);
    let followed = patcher.follow(command, signals)?;
    Ok(result::counts(Found::of(patcher), wanted, Run::of_command(&followed)))
}

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
    let window = Window { pid, is_child: false, length: window, signals };
    let collect = |patcher: Patcher<Counting>, watched: &Watched| {
        let run = Run::of_window(watched, patcher.restored);
        result::counts(Found::of(patcher), wanted, run)
    };
    let found =
        watched(&window, wanted, |_| Counting::new(Running::Live, &[]), &collect, progress)?;
    Ok(found.unwrap_or_else(|signal| interrupted(wanted, signal)))
}

/// The result without any count.
fn interrupted(wanted: &[Wanted], signal: i32) -> Counts {
    Counts {
        functions: wanted.iter().map(|_| Err(Uncounted::Interrupted)).collect(),
        interrupted: Some(signal),
        unplanned: true,
        ..Counts::default()
    }
}
