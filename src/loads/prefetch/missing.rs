//! Why a part of the advice on a load is not known.

use crate::latency::Level;
use std::fmt;

/// Why a part of the advice on a load is not known.
#[derive(Debug, Clone, PartialEq)]
pub enum Missing {
    /// Its loop is not in the branch stacks.
    NoStacks,
    /// The branch stacks have no cycles.
    NoCycles,
    /// The branch stacks have no cycles, for loads that probes timed, and the block was not measured.
    NotMeasured,
    /// The cycles of iterations have no modes.
    NoModes,
    /// The lowest mode is 0 cycles.
    NoTime,
    /// No load of the loop is sampled, by which iterations without misses are known.
    NotSampled,
    /// No sample of the load hits the first cache; latencies below this many cycles, if given, are not sampled.
    AllMiss(Option<u64>),
    /// No mode lies above the iterations without misses.
    NoMisses,
    /// The load hits the near caches.
    Hits(Hits),
    /// This level, which serves the misses, takes no longer than a hit.
    NoLonger(Level),
    /// The distance is more than `most` iterations.
    TooFar {
        /// Cycles that a miss adds.
        mc: f64,
        /// Cycles of an iteration.
        ic: f64,
        /// The longest distance.
        most: f64,
    },
    /// The distance decides it, which is not known.
    NoDistance,
    /// The trips of the loop are not known.
    NoTrips,
    /// The trips of the loop are not known well enough.
    VagueTrips,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllMiss(Some(least)) => {
                return write!(
                    f,
                    "every iteration misses, as far as the samples show (loads of less than {least} cycles are not sampled)"
                );
            }
            Self::Hits(hits) => return hits.fmt(f),
            Self::NoLonger(level) => return write!(f, "{level} takes no longer than a hit"),
            Self::TooFar { mc, ic, most } => {
                return write!(f, "MC {mc:.0} ÷ IC {ic:.1} is more than {most} iterations");
            }
            Self::NoStacks => "its loop is not in the branch stacks",
            Self::NoCycles => "this LBR has no cycles",
            Self::NotMeasured => "without cycles in branch stacks it can only be measured",
            Self::NoModes => "no cycles stand out among those of the iterations",
            Self::NoTime => "the lowest mode is 0 cycles, which no iteration takes",
            Self::NotSampled => {
                "whether any iteration is without misses is not known: no load of the loop is sampled"
            }
            Self::AllMiss(None) => "every iteration misses: no sample of the load hits L1",
            Self::NoMisses => "no mode lies above the iterations without misses",
            Self::NoDistance => "it depends on the distance",
            Self::NoTrips => "the trips of the loop are not known",
            Self::VagueTrips => "the trips of the loop are not known well enough",
        })
    }
}

impl std::error::Error for Missing {}

/// The near caches that serve a load: and their shares of its executions, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits(pub Vec<(f64, Level)>);

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it already hits: ")?;
        for (number, (share, level)) in self.0.iter().enumerate() {
            match number {
                0 => write!(f, "{:.1} % of its timed executions in {level}", 100.0 * share)?,
                _ => write!(f, ", {:.1} % in {level}", 100.0 * share)?,
            }
        }
        Ok(())
    }
}
