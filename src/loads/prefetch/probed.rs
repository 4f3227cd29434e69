//! Probe results for a load, without a PMU: executions that were timed one by one, between fences.

use super::cost::Sampled;
use super::missing::{Hits, Missing};
use super::refusal::Refusal;
use super::trips::{TripCount, Trips};
use crate::class::{Class, Kind};
use crate::latency::Level;

/// A level matters if it serves at least this share of the executions.
const RELEVANT: f64 = 0.05;
/// Levels that are no miss: hits of L2 take 12 to 18 cycles (InstLatx64), which out-of-order execution overlaps with
/// the hundreds of instructions around.
const NEAR: [Level; 2] = [Level::L1, Level::L2];
/// A stride goes on beyond a loop if it holds for this multiple of its trips.
const MORE: f64 = 2.0;

/// Executions of a load that were timed between fences, and the class of its recorded addresses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Probed {
    /// Executions that were timed.
    pub executions: u64,
    /// Why none was, in the words of the document that the count was read from.
    pub untimed: Option<String>,
    /// Levels that served them, the fastest first.
    pub levels: Vec<Served>,
    /// Cycles of a hit of the first level.
    pub hit: f64,
    /// The class of the recorded addresses.
    pub class: Option<Kind>,
    /// How often its stride, or that of the load of its index, went on from one execution to the next (`taken`),
    /// whichever loops were entered in between, and how often not (`left`).
    pub steps: Option<Trips>,
}

/// A level of the memory hierarchy that serves a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Served {
    /// Which.
    pub level: Level,
    /// Its share of the executions, 0 to 1.
    pub share: f64,
    /// Latency of its executions in cycles.
    pub cycles: f64,
}

impl Probed {
    /// How many executions in a row have their addresses ahead by a stride, if more than the trips of the loop: rows of
    /// a matrix that lie one after the other.
    pub(super) fn runs_on(&self, trips: TripCount) -> Option<TripCount> {
        let run = self.steps.as_ref()?.count();
        run.least().zip(trips.least()).filter(|(run, trips)| *run > MORE * trips).map(|_| run)
    }

    /// The slowest level that matters, unless it is near.
    fn slowest(&self) -> Option<&Served> {
        let is_near = |one: &&Served| NEAR.contains(&one.level);
        let far = self.levels.iter().filter(|one| !is_near(one));
        far.rev().find(|one| one.share >= RELEVANT)
    }

    /// The slowest level that matters, unless it is near.
    pub fn slowest_level(&self) -> Option<Level> {
        self.slowest().map(|one| one.level)
    }

    /// Cycles that a miss adds.
    pub(super) fn miss_cost(&self) -> Result<f64, Missing> {
        let slowest = self.slowest().ok_or_else(|| Missing::Hits(self.near()))?;
        match slowest.cycles > self.hit {
            true => Ok(slowest.cycles - self.hit),
            false => Err(Missing::NoLonger(slowest.level)),
        }
    }

    /// Where [`Self::miss_cost`] is from, in words.
    pub(super) fn source(&self) -> Option<String> {
        let one = self.slowest()?;
        Some(format!(
            "fenced latency by probes: {} serves {:.0} % of the executions in {:.0} cycles; a hit takes {:.0}",
            one.level,
            100.0 * one.share,
            one.cycles,
            self.hit
        ))
    }

    /// Why no prefetch is of use, by the latencies.
    pub(super) fn hits(&self) -> Option<Hits> {
        self.slowest().is_none().then(|| self.near())
    }

    /// Misses of one execution of its loop, which has `trips` trips.
    pub(super) fn misses_of_an_execution(&self, trips: TripCount) -> Option<f64> {
        Some(self.slowest()?.share * trips.least()?)
    }

    fn near(&self) -> Hits {
        let near = self.levels.iter().filter(|one| NEAR.contains(&one.level));
        Hits(near.map(|one| (one.share, one.level)).collect())
    }

    /// The probe results as samples.
    pub(super) fn sampled(&self) -> Sampled {
        let number = |share: f64| (share * self.executions as f64).round() as u64;
        let latencies = self.levels.iter().map(|one| (one.cycles as u64, number(one.share)));
        Sampled {
            samples: self.executions,
            first_cache: self.levels.first().map_or(0, |one| number(one.share)),
            latencies: latencies.collect(),
            least_latency: None,
            share_of_loop: 1.0,
        }
    }

    /// Why the class that the code says is not certain. Addresses alone show no computation: what the code computes
    /// from loaded values may look irregular, or indirect.
    pub(super) fn disagreement(&self, code: &Class<u64>) -> Option<Refusal> {
        let recorded = self.class?;
        let agree = match code {
            Class::Indirect { .. } | Class::Complex { .. } => {
                matches!(recorded, Kind::Indirect | Kind::Complex | Kind::Irregular)
            }
            other => other.kind() == recorded,
        };
        (!agree).then(|| Refusal::Disagreement { code: code.clone(), recorded })
    }
}
