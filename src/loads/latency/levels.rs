//! Latencies → shares of the levels.
//!
//! Memory is what takes longer than a limit between the last cache and memory. Below it the histogram is
//! a mixture of those of the caches, whose weights are those of the greatest likelihood (expectation
//! maximisation: Dempster, Laird and Rubin, 1977).

use super::{Histogram, Timed, resample};
use fastrand::Rng;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Steps of the maximisation.
const STEPS: usize = 200;
/// Samples drawn for the interval.
const DRAWN: usize = 200;
/// Share cut off at each end of the interval: 95 % lie within.
const TAIL: f64 = 0.025;
/// Latencies from memory that may be shorter than the limit: some were hits after all.
const EARLY: f64 = 0.05;
/// Room left below memory's early latencies for what is not memory.
const MARGIN: f64 = 0.9;
/// Least share of a cache's loads that must have hit a cache, else it is not known what a hit takes.
const USABLE: f64 = 0.2;
/// Weight of each latency that a hit of a cache is only assumed to take.
const EACH: u64 = 1000;
/// Probability of a latency that a cache has never shown; ten times that for the last cache, whose hits
/// may take longer by a page walk.
const UNSEEN: f64 = 1e-4;

/// The level that serves a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A cache: 1 is the first.
    Cache(u8),
    /// None of them.
    #[default]
    Memory,
}

impl Level {
    /// The first cache.
    pub const L1: Self = Self::Cache(1);
    /// The second one.
    pub const L2: Self = Self::Cache(2);
    /// The third one.
    pub const L3: Self = Self::Cache(3);
}

/// As in documents: `L2`, `DRAM`.
impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Cache(number) => write!(f, "L{number}"),
            Level::Memory => f.write_str("DRAM"),
        }
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let cache = || name.strip_prefix('L')?.parse().ok().map(Self::Cache);
        let memory = (name == "DRAM").then_some(Self::Memory);
        let found = memory.or_else(cache);
        found.ok_or_else(|| D::Error::custom(format!("no level of memory is called `{name}`")))
    }
}

/// Latencies of loads of known levels on a host.
#[derive(Debug, Clone, Default)]
pub struct Calibration {
    /// The step of the counter.
    pub step: u32,
    /// By level, from the first cache to memory.
    pub levels: Vec<(Level, Timed)>,
}

/// The share of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// The level.
    pub level: Level,
    /// Its share of the loads, 0 to 1.
    pub share: f64,
    /// The interval that has it, as far as the size of the sample and the difference of the calibrations
    /// decide: 95 %.
    pub low: f64,
    /// Its end.
    pub high: f64,
}

/// Boundaries between the levels, in ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// From here on it is memory.
    pub memory: u32,
    /// Caches of which too few hits were seen: others use them. Their hits are taken to be anywhere
    /// between those of the one before and memory.
    pub assumed: Vec<Level>,
    /// Hits, by cache.
    caches: Vec<(Level, Timed)>,
}

impl Limits {
    /// Mean latencies of the caches that were measured, beyond those of the first.
    pub fn means(&self) -> impl Iterator<Item = (Level, f64)> {
        let measured = self.caches.iter().filter(|(level, _)| !self.assumed.contains(level));
        measured.filter_map(|(level, all)| Some((*level, all.load.mean()? - all.near.usual()?)))
    }
}

/// Why the shares of the levels are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmeasured {
    /// No execution of the load was timed.
    Load,
    /// There is no calibration.
    Everything,
    /// The latency of memory was not measured.
    Memory,
    /// The latency of the first cache was not measured.
    First,
    /// The latency of no cache was measured.
    Caches,
}

impl fmt::Display for Unmeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "it was not executed while latencies were taken",
            Self::Everything => "no calibration",
            Self::Memory => "what memory takes was not measured",
            Self::First => "what the first cache takes was not measured",
            Self::Caches => "what the caches take was not measured",
        })
    }
}

impl std::error::Error for Unmeasured {}

/// Boundaries between the levels.
///
/// # Errors
/// Memory or the first cache were not measured.
pub fn limits(calibration: &Calibration) -> Result<Limits, Unmeasured> {
    let of = |wanted: Level| calibration.levels.iter().find(|(level, _)| *level == wanted);
    let (_, memory) = of(Level::Memory).ok_or(Unmeasured::Memory)?;
    let early = memory.load.quantile(EARLY).ok_or(Unmeasured::Memory)?;
    let first = (f64::from(early) * MARGIN) as u32;
    let (mut caches, mut assumed): (Vec<(Level, Timed)>, _) = (Vec::new(), Vec::new());
    for (level, all) in calibration.levels.iter().filter(|(level, _)| *level != Level::Memory) {
        let hits = all.load.below(first);
        let is_measured = hits.total() as f64 > all.load.total() as f64 * USABLE;
        let near = all.near.clone();
        let load = match caches.last().and_then(|(_, before)| before.load.quantile(0.99)) {
            _ if is_measured => hits,
            None => return Err(Unmeasured::First),
            Some(before) => {
                assumed.push(*level);
                let step = calibration.step.max(1);
                let between = (1..).map(|n| before + n * step).take_while(|t| *t < first);
                between.map(|ticks| (ticks, EACH)).collect()
            }
        };
        caches.push((*level, Timed { near, load }));
    }
    let measured = caches.iter().rfind(|(level, _)| !assumed.contains(level));
    let last = measured.and_then(|(_, hits)| hits.load.quantile(0.99));
    let last = last.ok_or(Unmeasured::Caches)?;
    let memory = (f64::from(last) * f64::from(early)).sqrt() as u32;
    Ok(Limits { memory, assumed, caches })
}

/// The shares of the levels of a load. Several calibrations, such as before and after the run, show how
/// much they differ.
///
/// # Errors
/// There are no latencies or calibrations.
///
/// ```
/// use loads::latency::{Calibration, Histogram, Level, Timed, shares};
///
/// let of = |ticks: &[(u32, u64)]| ticks.iter().copied().collect::<Histogram>();
/// let near = of(&[(52, 9_200), (78, 800)]);
/// let timed = |ticks: &[(u32, u64)]| Timed { near: near.clone(), load: of(ticks) };
/// let levels = vec![
///     (Level::Cache(1), timed(&[(52, 9_200), (78, 800)])),
///     (Level::Cache(2), timed(&[(52, 6_500), (78, 3_500)])),
///     (Level::Memory, timed(&[(364, 5_000), (390, 5_000)])),
/// ];
/// let calibration = Calibration { step: 26, levels };
/// let found = shares(&timed(&[(52, 6_500), (78, 3_500), (390, 10_000)]), &[calibration])?;
/// let names: Vec<String> = found.iter().map(|one| one.level.to_string()).collect();
/// assert_eq!(names, ["L1", "L2", "DRAM"]);
/// assert!(found[0].share < 0.03 && found[1].share > 0.47 && found[2].share == 0.5);
/// # Ok::<(), loads::latency::Unmeasured>(())
/// ```
pub fn shares(samples: &Timed, calibrations: &[Calibration]) -> Result<Vec<Share>, Unmeasured> {
    if samples.load.total() == 0 {
        return Err(Unmeasured::Load);
    }
    let all: Vec<Limits> = calibrations.iter().map(limits).collect::<Result<_, _>>()?;
    let first = all.first().ok_or(Unmeasured::Everything)?;
    // Levels that all calibrations have.
    let common = |level: &Level| all.iter().all(|one| one.caches.iter().any(|c| c.0 == *level));
    let levels: Vec<Level> = first.caches.iter().map(|c| c.0).filter(common).collect();
    let step = calibrations.iter().map(|one| one.step).max().unwrap_or(1).max(1);
    // As they would be when and where the samples were taken.
    let of = |limits: &Limits, level: &Level, random: Option<&mut Rng>| -> Density {
        let own = limits.caches.iter().find(|(own, _)| own == level);
        own.map_or_else(Density::default, |(_, hits)| {
            let by = samples.near.usual().zip(hits.near.usual()).map_or(0.0, |(a, b)| a - b);
            let load = random.map(|random| resample(&hits.load, random));
            shifted(load.as_ref().unwrap_or(&hits.load), by, step)
        })
    };
    let together: Vec<Density> = levels
        .iter()
        .map(|level| all.iter().map(|one| of(one, level, None)).collect::<Vec<_>>())
        .map(|each| mean(&each))
        .collect();
    let limit = all.iter().map(|one| one.memory).sum::<u32>() / all.len() as u32;
    let point = weights(&samples.load, &together, limit);
    let mut random = Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); point.len()];
    for number in 0..DRAWN {
        let one = &all[number % all.len()];
        let caches: Vec<Density> =
            levels.iter().map(|level| of(one, level, Some(&mut random))).collect();
        let found = weights(&resample(&samples.load, &mut random), &caches, one.memory);
        drawn.iter_mut().zip(found).for_each(|(all, share)| all.push(share));
    }
    // None of n: below 3 / n with 95 % (Hanley and Lippman-Hand, JAMA 249, 1983).
    let least = (3.0 / samples.load.total() as f64).min(1.0);
    let levels = levels.into_iter().chain([Level::Memory]);
    let share = |((level, share), mut all): ((Level, f64), Vec<f64>)| {
        all.sort_by(f64::total_cmp);
        let at = |part: f64| all[((part * all.len() as f64) as usize).min(all.len() - 1)];
        let (low, high) = (at(TAIL).min(share), at(1.0 - TAIL).max(share));
        Share { level, share, low: low.min(1.0 - least), high: high.max(least) }
    };
    let mut found: Vec<Share> = levels.zip(point).zip(drawn).map(share).collect();
    found.iter_mut().for_each(|one| one.low = one.low.clamp(0.0, one.share));
    Ok(found)
}

/// The probability of each latency.
type Density = BTreeMap<u32, f64>;

/// A histogram as it would be if all latencies were `by` ticks longer: a part of those of each step is seen
/// as the next one.
fn shifted(of: &Histogram, by: f64, step: u32) -> Density {
    let total = of.total() as f64;
    let steps = (by / f64::from(step)).floor();
    let part = by / f64::from(step) - steps;
    let mut found = Density::new();
    for (ticks, n) in of.iter() {
        let first = f64::from(ticks) + steps * f64::from(step);
        for (at, part) in [(first, 1.0 - part), (first + f64::from(step), part)] {
            *found.entry(at.max(0.0) as u32).or_default() += part * n as f64 / total;
        }
    }
    found
}

/// The mean of densities.
fn mean(all: &[Density]) -> Density {
    let mut found = Density::new();
    for (ticks, share) in all.iter().flatten() {
        *found.entry(*ticks).or_default() += share / all.len() as f64;
    }
    found
}

/// The weights of the caches and of memory.
fn weights(samples: &Histogram, caches: &[Density], limit: u32) -> Vec<f64> {
    let total = samples.total() as f64;
    let near = samples.below(limit);
    let hits = near.total() as f64;
    let mut result = vec![0.0; caches.len() + 1];
    if total == 0.0 {
        return result;
    }
    let last = caches.len().saturating_sub(1);
    let probability = |number: usize, ticks: u32| {
        let of = caches[number].get(&ticks).copied().unwrap_or(0.0);
        of.max(if number == last { 10.0 * UNSEEN } else { UNSEEN })
    };
    let bins: Vec<(f64, Vec<f64>)> = near
        .iter()
        .map(|(ticks, n)| {
            let by = (0..caches.len()).map(|number| probability(number, ticks)).collect();
            (n as f64, by)
        })
        .collect();
    let mut weights = vec![1.0 / caches.len().max(1) as f64; caches.len()];
    for _ in 0..STEPS {
        let mut next = vec![0.0; weights.len()];
        for (n, by) in &bins {
            let sum: f64 = weights.iter().zip(by).map(|(weight, p)| weight * p).sum();
            for ((next, weight), p) in next.iter_mut().zip(&weights).zip(by) {
                *next += n * weight * p / sum.max(f64::MIN_POSITIVE);
            }
        }
        weights = next.into_iter().map(|sum| sum / hits.max(1.0)).collect();
    }
    for (to, weight) in result.iter_mut().zip(weights) {
        *to = weight * hits / total;
    }
    result[caches.len()] = (total - hits) / total;
    result
}
