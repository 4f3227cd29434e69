//! One difference of counts: N long runs minus N short ones.

use super::group::{Counting, Refused, Total};
use crate::clock::{Calibration, Sentinel, TscClock};
use crate::sandbox::Ended;
use nix::errno::Errno;
use tma::Result;

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

/// One difference of the open group, at one placement.
///
/// # Errors
/// The sandbox cannot be started.
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

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Refused(refused) => {
                write!(f, "the kernel refuses the event ({})", super::group::refusal(refused.errno))
            }
            Stop::Starved => f.write_str(
                "its counters were not available all the time: the NMI watchdog or another \
                 profiler uses some, or the block ran on another type of core",
            ),
            Stop::Broken(errno) => {
                write!(f, "the counters cannot be read ({})", super::group::refusal(*errno))
            }
            Stop::Ended(_) => f.write_str("the block did not run to its end while it was counted"),
            Stop::Noise => f.write_str("its counts are within noise"),
            Stop::Contended => f.write_str("contention on the core nearly all the time"),
        }
    }
}
