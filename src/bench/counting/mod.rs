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

mod group;
mod misses;
mod runs;
mod sample;
#[cfg(test)]
pub mod scripted;
mod source;
#[cfg(test)]
mod tests;
mod tree;
mod watch;

pub use group::{Counting, PerfCounting};
pub use misses::witness;
pub use runs::FormRuns;
pub use sample::{Runs, Sample, Stop, calm, sample};
pub use source::Source;
pub use watch::{Watch, Watched};

use crate::counters::CorePmu;
use crate::report::{Hierarchy, Miss};
use tma::Result;

/// Tries for each repetition that is kept.
const TRIES: usize = 4;

/// The tree and the misses of one block.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Level 1–2.
    pub hierarchy: Hierarchy,
    /// Single events.
    pub misses: Vec<Miss>,
}

/// How a block is counted.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Differences taken of each group.
    pub repetitions: usize,
    /// Whether a repetition needs the core for itself to be kept.
    pub sentinel: bool,
}

/// Counts every group of `core` and every event of the misses, each in runs of its own.
///
/// # Errors
/// The sandbox cannot be started.
pub fn count(
    core: &CorePmu,
    runs: &mut dyn Runs,
    counting: &mut dyn Counting,
    effort: Effort,
) -> Result<Counted> {
    let mut counter = Counter { runs, counting, effort };
    let hierarchy = tree::measure(core, &mut counter)?;
    let misses = misses::measure(core, &mut counter)?;
    Ok(Counted { hierarchy, misses })
}

/// Counts one group after the other.
struct Counter<'a> {
    runs: &'a mut dyn Runs,
    counting: &'a mut dyn Counting,
    effort: Effort,
}

impl Counter<'_> {
    /// Repetitions of one group, over the placements in turn; those kept.
    fn group(
        &mut self,
        events: &[pmu::machine::Encoding],
    ) -> Result<std::result::Result<Vec<Sample>, Stop>> {
        let process = self.runs.process()?;
        if let Err(refused) = self.counting.open(process, events) {
            return Ok(Err(Stop::Refused(refused)));
        }
        let taken = self.repetitions();
        self.counting.close();
        let samples = match taken? {
            Ok(samples) => samples,
            Err(stop) => return Ok(Err(stop)),
        };
        if samples.iter().all(|s| !s.whole) {
            return Ok(Err(Stop::Starved));
        }
        let calm = calm(&samples, self.effort.sentinel);
        let quiet: Vec<Sample> =
            samples.into_iter().zip(calm).filter(|(_, calm)| *calm).map(|(s, _)| s).collect();
        let few = |samples: &[Sample]| samples.len() < 2;
        if few(&quiet) {
            return Ok(Err(Stop::Contended));
        }
        let kept: Vec<Sample> = quiet.into_iter().filter(Sample::is_sound).collect();
        Ok(if few(&kept) { Err(Stop::Noise) } else { Ok(kept) })
    }

    fn repetitions(&mut self) -> Result<std::result::Result<Vec<Sample>, Stop>> {
        let wanted = self.effort.repetitions.max(2);
        let mut samples: Vec<Sample> = Vec::new();
        for turn in 0..wanted * TRIES {
            let placement = turn % self.runs.placements().max(1);
            match sample(self.runs, self.counting, placement)? {
                Ok(sample) => samples.push(sample),
                Err(stop) => return Ok(Err(stop)),
            }
            let starved = samples.len() >= 2 && samples.iter().all(|s| !s.whole);
            let good = samples.iter().zip(calm(&samples, self.effort.sentinel));
            if starved || good.filter(|(s, c)| s.is_sound() && *c).count() >= wanted {
                break;
            }
        }
        Ok(Ok(samples))
    }
}

/// What the kernel answered, in its words.
fn refusal(errno: nix::errno::Errno) -> String {
    errno.desc().to_lowercase()
}
