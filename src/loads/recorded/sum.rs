//! Sums over samples: of an instruction, a variable or an event.

use super::data_source::{DataSource, Level, Snoop, Translation};
use crate::latency::Histogram;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Operation;

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
