//! Records of instructions of a live process, in a time window.

use super::observing::{self, Observing};
use super::request::{Pace, Recorded};
use crate::facts::Function;
use crate::patch::{Patcher, Progress, Wanted, Window, notes, watched};
use crate::plan::Request;
use crate::process::{Followed, Watched};
use tma::Result;

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
        let Watched { wall, interrupted, ended, .. } = *watched;
        // Without the first one.
        let tasks = watched.tasks.saturating_sub(1);
        let (remains, restored) = (watched.remains.is_some() && !ended, patcher.restored);
        let followed = Followed { wall, exit: None, interrupted, tasks };
        let recorded = observing::recorded(patcher, &followed);
        Recorded { remains, notes: notes(watched, restored), ..recorded }
    };
    let probes = |targets: &[_]| Observing::new(targets, requests, pace, true);
    watched(window, wanted, probes, &collect, progress)
}
