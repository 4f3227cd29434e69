//! Recorded samples of loads and stores (PEBS, IBS) → sums of instructions and variables, shared cache lines
//! (`lines`), and critical loads, by the thresholds of Litz et al., "CRISP: Critical Slice Prefetching" (ASPLOS
//! 2022). `data_source` decodes where the data of a sample came from.

mod data_source;
mod lines;

use crate::latency::Histogram;
pub use data_source::{DataSource, IbsOp, Level, Operation, Snoop, Translation};
pub use lines::{Accesses, Actor, Line, LineAccess, Lines, MOST_LINES, SharedLine, Sharing};
use std::collections::BTreeMap;

/// One sampled access.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// Where its data came from.
    pub source: DataSource,
    /// Latency in core cycles, if recorded.
    pub latency: Option<u32>,
    /// Misses of the first cache that were under way with it, if recorded.
    pub open: Option<u32>,
    /// How many events it stands for.
    pub period: u64,
    /// Whether its address has no skid.
    pub exact: bool,
}

/// The samples of something.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    /// Samples.
    pub samples: u64,
    /// Σ period: how many events they stand for.
    pub events: f64,
    /// Σ latency × period, of the samples with a latency.
    pub weight: f64,
    /// Σ latency × period of those that missed the last cache.
    pub miss_weight: f64,
    /// Misses of the last cache with a known number of others under way, and the sum of that number.
    pub open: (u64, u64),
    /// Latencies.
    pub latencies: Histogram,
    /// Samples and Σ period by level, of those that have one.
    pub levels: BTreeMap<Level, (u64, f64)>,
    /// Samples with a known translation, …
    pub translated: u64,
    /// … hits of the second TLB, …
    pub second_tlb: u64,
    /// … and walks of the page tables.
    pub walks: u64,
    /// Locked accesses.
    pub locked: u64,
    /// Another cache had the line, unmodified.
    pub snoop_hits: u64,
    /// Another cache had the line, modified.
    pub snoop_modified: u64,
    /// Samples whose address may be that of a later instruction.
    pub inexact: u64,
}

impl Sum {
    /// Adds a sample.
    pub fn add(&mut self, access: &Access) {
        let period = access.period as f64;
        self.samples += 1;
        self.events += period;
        if let Some(latency) = access.latency {
            self.latencies.add(latency);
            let weight = f64::from(latency) * period;
            self.weight += weight;
            if access.source.level.is_some_and(Level::is_miss_of_last_cache) {
                self.miss_weight += weight;
            }
        }
        let missed = access.source.level.is_some_and(Level::is_miss_of_last_cache);
        if let Some(open) = access.open.filter(|_| missed) {
            self.open = (self.open.0 + 1, self.open.1 + u64::from(open));
        }
        if let Some(level) = access.source.level {
            let (samples, events) = self.levels.entry(level).or_default();
            *samples += 1;
            *events += period;
        }
        if let Some(translation) = access.source.translation {
            self.translated += 1;
            self.second_tlb += u64::from(translation == Translation::SecondHit);
            self.walks += u64::from(translation == Translation::Walk);
        }
        self.locked += u64::from(access.source.locked == Some(true));
        self.snoop_hits += u64::from(access.source.snoop == Snoop::Hit);
        self.snoop_modified += u64::from(access.source.snoop == Snoop::Modified);
        self.inexact += u64::from(!access.exact);
    }

    /// Samples of a level.
    pub fn level(&self, level: Level) -> u64 {
        self.levels.get(&level).map_or(0, |(samples, _)| *samples)
    }

    /// Events that missed the last cache.
    pub fn misses(&self) -> f64 {
        let missed = self.levels.iter().filter(|(level, _)| level.is_miss_of_last_cache());
        missed.map(|(_, (_, events))| events).sum()
    }

    /// Share of those with a level that missed the last cache.
    pub fn miss_share(&self) -> Option<f64> {
        let known: f64 = self.levels.values().map(|(_, events)| events).sum();
        (known > 0.0).then(|| self.misses() / known)
    }
}

/// A critical load is more than this share of all executed loads.
const LEAST_EXECUTED: f64 = 0.05;
/// More than this share of its executions misses the last cache.
const LEAST_MISSES: f64 = 0.2;
/// Fewer misses than this are under way at the same time (memory-level parallelism).
const MOST_PARALLEL: f64 = 5.0;
/// A hard branch is mispredicted more often than this.
const HARD_BRANCH: f64 = 0.15;

/// Whether a hardware prefetcher can be expected to follow the addresses of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regularity {
    /// Constant, or a constant distance from one to the next.
    Regular,
    /// Neither constant nor at a constant distance.
    Irregular,
    /// Not known.
    Unknown,
}

/// Known properties of a load.
#[derive(Debug, Clone, Copy)]
pub struct Judgement {
    /// Its share of all executed loads, or of the sampled ones.
    pub executed: f64,
    /// The share of its executions that misses the last cache, if known.
    pub misses: Option<f64>,
    /// Its addresses.
    pub addresses: Regularity,
    /// Misses under way at the same time, if known.
    pub parallel: Option<f64>,
}

/// Whether a load is critical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Critical {
    /// As far as is known.
    Yes,
    /// Only if its addresses are irregular, which is not known.
    Perhaps,
    /// No.
    No,
}

/// Judges a load. What is not known of its parallelism does not decide.
///
/// ```
/// use loads::recorded::{Critical, Judgement, Regularity, judge};
///
/// let load = Judgement {
///     executed: 0.08,
///     misses: Some(0.6),
///     addresses: Regularity::Irregular,
///     parallel: None,
/// };
/// assert_eq!(judge(&load), Critical::Yes);
/// assert_eq!(judge(&Judgement { executed: 0.01, ..load }), Critical::No);
/// assert_eq!(judge(&Judgement { addresses: Regularity::Regular, ..load }), Critical::No);
/// assert_eq!(judge(&Judgement { addresses: Regularity::Unknown, ..load }), Critical::Perhaps);
/// ```
pub fn judge(load: &Judgement) -> Critical {
    let often = load.executed > LEAST_EXECUTED;
    let misses = load.misses.is_some_and(|share| share > LEAST_MISSES);
    let serial = load.parallel.is_none_or(|misses| misses < MOST_PARALLEL);
    match load.addresses {
        _ if !(often && misses && serial) => Critical::No,
        Regularity::Regular => Critical::No,
        Regularity::Irregular => Critical::Yes,
        Regularity::Unknown => Critical::Perhaps,
    }
}

/// A branch with fewer known executions is not judged: two or three mispredictions are chance.
const LEAST_SEEN: u64 = 10;
/// Standard deviations of a 95 % interval.
const Z: f64 = 1.96;

/// Whether a branch is hard: the share of its `seen` executions that were mispredicted is above
/// `HARD_BRANCH` with 95 % certainty (lower end of Wilson's interval, JASA 22, 1927).
///
/// ```
/// use loads::recorded::is_hard;
///
/// assert!(is_hard(50, 100) && is_hard(5, 10));
/// assert!(!is_hard(1, 1), "too few to know");
/// assert!(!is_hard(14, 100));
/// ```
pub fn is_hard(mispredicted: u64, seen: u64) -> bool {
    if seen < LEAST_SEEN {
        return false;
    }
    let (n, p) = (seen as f64, mispredicted.min(seen) as f64 / seen as f64);
    let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let low = (p + Z * Z / (2.0 * n) - spread) / (1.0 + Z * Z / n);
    low > HARD_BRANCH
}

#[cfg(test)]
mod tests {
    use super::{Operation, *};

    fn of(level: Level, latency: u32, period: u64) -> Access {
        let source = DataSource {
            operation: Some(Operation::Load),
            level: Some(level),
            snoop: Snoop::None,
            translation: None,
            locked: Some(false),
        };
        Access { source, latency: Some(latency), open: None, period, exact: true }
    }

    /// By hand.
    #[test]
    fn weights_are_latencies_times_periods() {
        let mut sum = Sum::default();
        assert_eq!(sum.miss_share(), None);
        for access in [of(Level::L2, 40, 10), of(Level::Ram, 400, 10), of(Level::Ram, 500, 20)] {
            sum.add(&access);
        }
        assert_eq!((sum.samples, sum.events, sum.weight), (3, 40.0, 14_400.0));
        assert_eq!((sum.level(Level::Ram), sum.misses()), (2, 30.0));
        assert_eq!(sum.miss_weight, 14_000.0);
        assert_eq!(sum.miss_share(), Some(0.75));
        assert_eq!(sum.latencies.quantile(0.5), Some(400));
    }
}
