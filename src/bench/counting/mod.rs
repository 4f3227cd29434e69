//! Counts by a PMU in a block's document: core cycles, misses, and the block's top-down tree.
//!
//! The runner opens events on the worker's process and enables them around a whole command. The counts
//! of a command with N long runs minus those of one with N short runs belong to the iterations between
//! them; entry, exit, calibration and wake-up are in both and cancel. One group is open at a time, so
//! nothing is multiplexed; a reading whose running time differs from its enabled time is void.
//!
//! | file | concern |
//! |---|---|
//! | `group` | one group of counters on a process |
//! | `counter`, `count` | repetitions of a group; all groups of a block |
//! | `sample` | one difference: N long runs minus N short ones |
//! | `runs` | long and short runs of a form in the sandbox |
//! | `pmu_clock` | core cycles as the PMU counts them |
//! | `tree` | level 1–2 of the top-down tree |
//! | `misses` | single events per iteration |
//! | `scripted` | for tests: scripted block, processor and kernel |
//! | `source` | the clock and counters that a measurer uses |
//! | `software_events` | software events, which need no PMU |

mod count;
mod counter;
mod group;
mod misses;
mod pmu_clock;
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
pub use misses::check_with_counts;
pub use runs::FormRuns;
pub use sample::{Runs, Sample, Stop, sample, uncontended};
pub use software_events::{SoftwareCounts, SoftwareEvents};
pub use source::Source;
