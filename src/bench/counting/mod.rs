//! Counts by a PMU in a block's document: core cycles, misses, and the block's top-down tree.
//!
//! The runner opens events on the worker's process and enables them around a whole command. The counts
//! of a command with N long runs minus those of one with N short runs belong to the iterations between
//! them; entry, exit, calibration and wake-up are in both and cancel. One group is open at a time, so
//! nothing is multiplexed; a reading whose running time differs from its enabled time is void.
//!
//! | file | concern |
//! |---|---|
//! | `events` | groups of counters on a process; software events, which need no PMU |
//! | `runs` | long and short runs of a form in the sandbox |
//! | `pmu_clock` | core cycles as the PMU counts them |
//! | `tree` | level 1–2 of the top-down tree |
//! | `misses` | single events per iteration |
//! | `source` | the clock and counters that a measurer uses |
//!
//! This file has one difference of counts, N long runs minus N short ones, and the repetitions of a group.

mod events;
mod misses;
mod pmu_clock;
mod runs;
mod source;
#[cfg(test)]
mod tests;
mod tree;

pub use events::{Counting, PerfCounting, SoftwareCounts, SoftwareEvents};
pub use misses::check_with_counts;
pub use runs::FormRuns;
pub use source::Source;

use crate::clock::{Calibration, Sentinel, TscClock};
use crate::sandbox::Ended;
use events::{Refused, Total};
use nix::errno::Errno;
use tma::Result;

/// Tries per accepted repetition.
const TRIES: usize = 4;

/// The long or the short run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All iterations.
    Long,
    /// Fewer, with the same entry and exit.
    Short,
}

/// Long and short runs that can be counted.
pub trait Runs {
    /// The process to count.
    ///
    /// # Errors
    /// It cannot be started.
    fn process(&mut self) -> Result<i32>;
    /// Placements of the code.
    fn placements(&self) -> usize;
    /// Iterations of the block by which a long run exceeds a short one.
    fn between(&self) -> f64;
    /// Runs in a command.
    fn runs(&self) -> f64;
    /// Runs one command; returns its calibration rounds, or how it ended if it did not complete.
    ///
    /// # Errors
    /// As `process`.
    fn run(
        &mut self,
        placement: usize,
        which: Which,
    ) -> Result<std::result::Result<Vec<Calibration>, Ended>>;
}

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Counts of the iterations between.
    pub counts: Vec<i64>,
    /// Counts of the whole long and short command.
    pub commands: (Vec<i64>, Vec<i64>),
    /// Nanoseconds counted in the iterations between.
    pub time: i64,
    /// Iterations between.
    pub iterations: f64,
    /// Whether every event was enabled 100 % of the time.
    pub whole: bool,
    /// Calibration rounds of both commands.
    pub rounds: Vec<Calibration>,
}

impl Sample {
    /// Whether the long command took longer than the short one; otherwise the difference is noise.
    pub fn is_sound(&self) -> bool {
        self.whole && self.time > 0
    }

    /// Count of the event at `index` per iteration.
    pub fn per_iteration(&self, index: usize) -> Option<f64> {
        self.counts.get(index).map(|c| *c as f64 / self.iterations)
    }
}

/// Why a group was not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The kernel refuses an event.
    Refused(Refused),
    /// The group was opened but never had all its counters.
    Starved,
    /// The counters could not be started or read.
    Broken(Errno),
    /// The block did not run to its end.
    Ended(Ended),
    /// Contention nearly all the time.
    Contended,
    /// Long commands took no longer than short ones.
    Noise,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refused) => {
                write!(f, "the kernel refuses the event ({})", events::refusal(refused.errno))
            }
            Self::Starved => f.write_str(
                "its counters were not available all the time: the NMI watchdog or another \
                 profiler uses some, or the block ran on another type of core",
            ),
            Self::Broken(errno) => {
                write!(f, "the counters cannot be read ({})", events::refusal(*errno))
            }
            Self::Ended(_) => f.write_str("the block did not run to its end while it was counted"),
            Self::Noise => f.write_str("its counts are within noise"),
            Self::Contended => f.write_str("contention on the core nearly all the time"),
        }
    }
}

/// One difference of the open group, at one placement.
pub fn sample(
    runs: &mut dyn Runs,
    counting: &mut dyn Counting,
    placement: usize,
) -> Result<std::result::Result<Sample, Stop>> {
    let mut rounds = Vec::new();
    let mut totals = vec![Total::default(); 3];
    // Start and stop once without a run: the baseline of the long one.
    if let Err(errno) = counting.start().and_then(|()| counting.stop()).map(|t| totals[0] = t) {
        return Ok(Err(Stop::Broken(errno)));
    }
    for (at, which) in [(1, Which::Long), (2, Which::Short)] {
        if let Err(errno) = counting.start() {
            return Ok(Err(Stop::Broken(errno)));
        }
        let ran = runs.run(placement, which)?;
        // If the worker died, how it ended matters more than the failed read.
        let read = counting.stop();
        match ran {
            Ok(more) => rounds.extend(more),
            Err(ended) => return Ok(Err(Stop::Ended(ended))),
        }
        match read {
            Ok(total) => totals[at] = total,
            Err(errno) => return Ok(Err(Stop::Broken(errno))),
        }
    }
    let iterations = runs.between() * runs.runs();
    Ok(Ok(difference(&totals[0], &totals[1], &totals[2], iterations, rounds)))
}

/// (`long` − `before`) − (`short` − `long`).
fn difference(
    before: &Total,
    long: &Total,
    short: &Total,
    iterations: f64,
    rounds: Vec<Calibration>,
) -> Sample {
    let signed = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    let command = |from: &Total, to: &Total| -> Vec<i64> {
        let pairs = to.values.iter().zip(from.values.iter().chain(std::iter::repeat(&0)));
        pairs.map(|(to, from)| signed(to.saturating_sub(*from))).collect()
    };
    let commands = (command(before, long), command(long, short));
    let counts = commands.0.iter().zip(&commands.1).map(|(l, s)| l - s).collect();
    let ran_for = |from: &Total, to: &Total| signed(to.running.saturating_sub(from.running));
    let ran = long.running > before.running && short.running > long.running;
    Sample {
        counts,
        commands,
        time: ran_for(before, long) - ran_for(long, short),
        iterations,
        whole: ran && short.enabled - before.enabled == short.running - before.running,
        rounds,
    }
}

/// For each sample, whether it was uncontended: every sentinel in both commands within its limit. All
/// are without `sentinel`.
pub fn uncontended(samples: &[Sample], sentinel: bool) -> Vec<bool> {
    if !sentinel {
        return vec![true; samples.len()];
    }
    let rounds: Vec<Calibration> = samples.iter().flat_map(|s| s.rounds.clone()).collect();
    let Ok(ratio) = TscClock::cycles_per_tick(&rounds) else { return vec![false; samples.len()] };
    let mut sentinel = Sentinel::default();
    sentinel.learn(&rounds, ratio);
    let uncontended = sentinel.uncontended(&rounds, ratio);
    let mut at = 0;
    let own = |s: &Sample| {
        let here = uncontended[at..at + s.rounds.len()].iter().all(|c| *c);
        at += s.rounds.len();
        here
    };
    samples.iter().map(own).collect()
}

/// Repetitions of a group.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Repetitions of each group.
    pub repetitions: usize,
    /// Whether repetitions with contention are rejected.
    pub sentinel: bool,
}

/// Counts groups one after the other.
pub(super) struct Counter<'a> {
    pub(super) runs: &'a mut dyn Runs,
    pub(super) counting: &'a mut dyn Counting,
    pub(super) effort: Effort,
}

impl Counter<'_> {
    /// Repetitions of one group, cycling through the placements; the accepted ones.
    pub(super) fn group(
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
        let uncontended = uncontended(&samples, self.effort.sentinel);
        let quiet: Vec<Sample> =
            samples.into_iter().zip(uncontended).filter(|(_, ok)| *ok).map(|(s, _)| s).collect();
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
        for attempt in 0..wanted * TRIES {
            let placement = attempt % self.runs.placements().max(1);
            match sample(self.runs, self.counting, placement)? {
                Ok(sample) => samples.push(sample),
                Err(stop) => return Ok(Err(stop)),
            }
            let starved = samples.len() >= 2 && samples.iter().all(|s| !s.whole);
            let good = samples.iter().zip(uncontended(&samples, self.effort.sentinel));
            if starved || good.filter(|(s, c)| s.is_sound() && *c).count() >= wanted {
                break;
            }
        }
        Ok(Ok(samples))
    }
}
