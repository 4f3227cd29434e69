//! Probe results for a load, without a PMU: executions that were timed one by one, between fences. Also says which
//! loads a prefetch may not help, by these times or by their pattern.

use super::cost::Sampled;
use super::pace::{TripCount, Trips};
use super::refusal::{Hits, Missing, Refusal};
use crate::access::{self, Access};
use crate::class::{Ahead, Class, Kind};
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

/// A stride of which at least this share of the samples hits L1 needs no prefetch.
const HITS: f64 = 0.8;
/// Misses of one execution of a loop by a load that misses where the loop begins, at least; one is expected.
const AT_FIRST: f64 = 0.5;
/// With fewer samples the latency is not known.
const LEAST_SAMPLES: u64 = 5;
/// Instructions of a slice that may run a second time in each iteration: beside a miss of hundreds of cycles they take
/// little (a generator of random numbers has 6 to 12).
const CHEAP: usize = 24;

/// Why a prefetch of this load is not advised, whatever it costs. `trips` are those of the innermost loop.
pub(super) fn refusal(
    access: Option<&Access>,
    sampled: Option<&Sampled>,
    probed: Option<&Probed>,
    trips: TripCount,
) -> Option<Refusal> {
    let Some(access) = access else { return Some(Refusal::NoCode) };
    let Some(level) = access.innermost() else { return Some(Refusal::NoLoop) };
    if let Some(why) = level.unknown {
        return Some(Refusal::NoPath(why));
    }
    if level.class == Class::Irregular {
        return Some(Refusal::Irregular);
    }
    let by_code = by_class(&level.class).or_else(|| by_copy(level));
    let by_code = by_code.or_else(|| level.after_chase.map(Refusal::AfterChase));
    if let Some(why) = by_code.or_else(|| probed?.disagreement(&level.class)) {
        return Some(why);
    }
    if let Some(untimed) = probed.filter(|own| own.executions == 0) {
        return Some(Refusal::Untimed(untimed.untimed.clone()));
    }
    let timed = probed.map(Probed::sampled);
    let sampled = timed.as_ref().or(sampled);
    let Some(sampled) = sampled.filter(|sampled| !sampled.latencies.is_empty()) else {
        return Some(Refusal::NoLatency);
    };
    if sampled.samples < LEAST_SAMPLES {
        return Some(Refusal::FewSamples(sampled.samples));
    }
    let hits = sampled.hits();
    if is_stride(&level.class) && hits >= HITS && !misses_at_first(access, probed, trips) {
        return Some(Refusal::StrideHits(hits));
    }
    probed.and_then(Probed::hits).map(Refusal::Hits)
}

fn is_stride(class: &Class<u64>) -> bool {
    matches!(class, Class::Constant | Class::Stride(_) | Class::UnknownStride)
}

/// Whether a load is a stride that hits but for the first iteration of its loop: executions of the loop begin at addresses
/// that are no stride, but can be known ahead, as of records that a list of pointers leads to.
pub(super) fn misses_at_first(access: &Access, probed: Option<&Probed>, trips: TripCount) -> bool {
    let [inner, outer, ..] = &access.levels[..] else { return false };
    let jumps = !is_stride(&outer.class) && outer.class.is_computable_ahead();
    let misses = probed.and_then(|own| own.misses_of_an_execution(trips));
    is_stride(&inner.class)
        && jumps
        && probed.is_some_and(|own| own.sampled().hits() >= HITS)
        && misses.is_some_and(|misses| misses >= AT_FIRST)
}

/// Why an address that its own earlier values are needed for is not computed ahead.
pub(super) fn by_copy(level: &access::Level) -> Option<Refusal> {
    let length = level.slice.len();
    match level.class.ahead() {
        Ahead::ByCopy if level.has_loops => Some(Refusal::CopyOfLoops),
        Ahead::ByCopy if length > CHEAP => Some(Refusal::LongCopy { length, most: CHEAP }),
        _ => None,
    }
}

fn by_class(class: &Class<u64>) -> Option<Refusal> {
    Some(match class {
        Class::Constant => Refusal::Constant,
        Class::Chase { .. } => Refusal::Chase,
        Class::OffsetOfChase { of, .. } => Refusal::OffsetOfChase(*of),
        Class::IndirectDelta { of } => Refusal::Sum(*of),
        Class::Indirect { of, inner, .. } if !inner.is_computable_ahead() => Refusal::Index(*of),
        Class::Complex { ahead: Ahead::No } => Refusal::Loaded,
        Class::Stride(_)
        | Class::UnknownStride
        | Class::Indirect { .. }
        | Class::Complex { .. }
        | Class::Irregular => return None,
    })
}
