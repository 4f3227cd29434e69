//! What a PMU adds to a block's report: core cycles as the kernel counts them, misses, and the
//! top-down tree of the block itself.
//!
//! Counts are taken from outside: the runner opens events on the worker's process and enables them
//! around a whole command. The counts of a command with N long runs, less those of one with N short
//! runs, belong to the iterations between; entry, exit, calibration and the kernel's wake-up are in
//! both and cancel. One group is open at a time, so nothing is multiplexed; a reading whose running
//! time is not its enabled time is void.
//!
//! | file | concern |
//! |---|---|
//! | `group` | one group of counters on a process; the real one and a scripted one |
//! | `sample` | one difference: N long runs less N short ones |
//! | `runs` | a form of a block in the sandbox, as `sample` runs it |
//! | `tree` | level 1–2 of the top-down tree |
//! | `misses` | single events per iteration |
//! | `scripted` | for tests: a block, a processor and a kernel that follow a script |
//! | `source` | which of this a profiler uses |
//! | `watch` | software events, which need no PMU |

mod count;
mod counter;
mod group;
mod misses;
mod runs;
mod sample;
#[cfg(test)]
pub mod scripted;
mod software_events;
mod source;
#[cfg(test)]
mod tests;
mod tree;

pub use group::{Counting, PerfCounting};
pub use misses::witness;
pub use runs::FormRuns;
pub use sample::{Runs, Sample, Stop, calm, sample};
pub use software_events::{SoftwareCounts, SoftwareEvents};
pub use source::Source;
