//! Cycles of an iteration without misses (IC).

use super::missing::Missing;
use super::peaks::{LEAST_SHARE, Peak, peaks};

/// Latency samples of a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// Samples.
    pub samples: u64,
    /// Samples that the first cache served.
    pub first_cache: u64,
    /// Latencies in cycles and how many samples had them.
    pub latencies: Vec<(u64, u64)>,
    /// Latencies below this are not sampled.
    pub least_latency: Option<u64>,
    /// Share of the samples of its loop that are its own, 0 to 1.
    pub share_of_loop: f64,
}

impl Sampled {
    /// Share of the samples that the first cache served.
    pub(super) fn hits(&self) -> f64 {
        self.first_cache as f64 / self.samples.max(1) as f64
    }
}

/// A block measured in isolation, as an iteration of the loop without misses.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Cycles of an iteration.
    pub cycles: f64,
    /// The lowest and the highest that were measured.
    pub range: (f64, f64),
    /// Where that is from, in words.
    pub source: String,
}

/// Cycles, and where they are from.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Cycles.
    pub cycles: f64,
    /// The lowest and the highest, if measured.
    pub range: Option<(f64, f64)>,
    /// Where they are from, in words.
    pub source: String,
}

impl Measured {
    /// It as a cost.
    pub(super) fn cost(&self) -> Cost {
        Cost { cycles: self.cycles, range: Some(self.range), source: self.source.clone() }
    }
}

/// Cycles of a hit in the first cache (4 to 5 on Intel's and AMD's cores since 2008: Agner Fog, microarchitecture;
/// InstLatx64).
const FIRST_CACHE: (f64, f64) = (4.0, 5.0);
/// Least share of hits of the first cache among the samples.
const LEAST_HITS: f64 = 0.02;
/// Least share of a loop's samples for its iterations to be those of the load.
const LEAST_OWN: f64 = 0.8;
/// Modes and latencies that differ by less than this share, or by 2 cycles, are the same.
const SAME: f64 = 0.05;
/// A lowest mode up to this factor above the measured block is an iteration without misses.
const MEASURED: f64 = 1.25;

/// Cycles of an iteration without misses, or why they are not known. `modes` are the peaks of the iteration
/// cycles, ascending.
///
/// The lowest mode alone says nothing: iterations may all miss. It is confirmed by
/// 1. samples of the load that the first cache served,
/// 2. the sampled latencies: each higher mode lies above the lowest one by a sampled latency less a hit's. If
///    the lowest one were a miss, they would lie above it by the difference of two latencies.
/// 3. the block, measured without misses.
///
/// # Errors
/// No mode stands out, or nothing confirms that the lowest one is without misses.
pub fn iteration_cost(
    modes: &[Peak],
    sampled: &Sampled,
    measured: Option<&Measured>,
) -> Result<Cost, Missing> {
    let lowest = modes.first().ok_or(Missing::NoModes)?;
    let cycles = lowest.at as f64;
    let of_mode =
        |how: String| Ok(Cost { cycles, range: None, source: format!("lowest mode, {how}") });
    if let Some(measured) = measured {
        if lowest.at > 0 && cycles <= measured.cycles * MEASURED + 2.0 {
            return of_mode(format!(
                "near the {:.1} cycles of the {}",
                measured.cycles, measured.source
            ));
        }
        return Ok(measured.cost());
    }
    if lowest.at == 0 {
        return Err(Missing::NoTime);
    }
    if modes.len() > 1 && sampled.share_of_loop >= LEAST_OWN {
        let hits = sampled.hits();
        if hits >= LEAST_HITS {
            return of_mode(format!("as {:.0} % of the load's samples hit L1", 100.0 * hits));
        }
        if explained(modes, sampled) {
            return of_mode("as the higher modes exceed it by the load's sampled latencies".into());
        }
    }
    Err(match sampled.least_latency {
        _ if sampled.samples == 0 => Missing::NotSampled,
        least => Missing::AllMiss(least.filter(|least| *least as f64 > FIRST_CACHE.1)),
    })
}

/// Whether all higher modes exceed the lowest by a sampled latency, less that of a hit.
fn explained(modes: &[Peak], sampled: &Sampled) -> bool {
    // Loads have few samples: a latency that is often the same counts, too, where it is no peak.
    let often = |n: u64| n > 1 && n as f64 >= LEAST_SHARE * sampled.samples as f64;
    let single = sampled.latencies.iter().filter(|(_, n)| often(*n)).map(|(cycles, _)| *cycles);
    let all = peaks(&sampled.latencies).into_iter().map(|peak| peak.at).chain(single);
    let latencies: Vec<f64> = all.map(|cycles| cycles as f64).collect();
    let Some((lowest, higher)) = modes.split_first() else { return false };
    let same = |seen: f64, expected: f64| (seen - expected).abs() <= (SAME * expected).max(2.0);
    let over = |mode: &Peak| (mode.at - lowest.at) as f64;
    let is_miss = |mode: &Peak| {
        let with = |hit: f64| latencies.iter().any(|latency| same(over(mode), latency - hit));
        with(FIRST_CACHE.0) || with(FIRST_CACHE.1)
    };
    // The lowest mode would be a miss, too.
    let is_other_miss = |mode: &Peak| {
        let differs = |one: &f64| latencies.iter().any(|other| same(over(mode), one - other));
        latencies.iter().any(differs)
    };
    !higher.is_empty() && higher.iter().all(is_miss) && !higher.iter().all(is_other_miss)
}
