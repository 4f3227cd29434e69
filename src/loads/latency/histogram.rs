//! Latencies in ticks of the time-stamp counter.

use std::collections::BTreeMap;

/// How often each latency came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram(BTreeMap<u32, u64>);

impl FromIterator<u32> for Histogram {
    fn from_iter<I: IntoIterator<Item = u32>>(all: I) -> Self {
        let mut found = Self::default();
        all.into_iter().for_each(|ticks| *found.0.entry(ticks).or_default() += 1);
        found
    }
}

impl FromIterator<(u32, u64)> for Histogram {
    fn from_iter<I: IntoIterator<Item = (u32, u64)>>(all: I) -> Self {
        let mut found = Self::default();
        all.into_iter().for_each(|(ticks, n)| *found.0.entry(ticks).or_default() += n);
        found
    }
}

impl Histogram {
    /// Latencies with their counts, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, u64)> {
        self.0.iter().map(|(ticks, n)| (*ticks, *n))
    }

    /// How often this latency came.
    pub fn count(&self, ticks: u32) -> u64 {
        self.0.get(&ticks).copied().unwrap_or(0)
    }

    /// How many latencies it holds.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The mean, if it holds any.
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        let sum: f64 = self.iter().map(|(ticks, n)| f64::from(ticks) * n as f64).sum();
        (total > 0).then(|| sum / total as f64)
    }

    /// The least latency that is not exceeded by this share of all.
    pub fn quantile(&self, share: f64) -> Option<u32> {
        let wanted = (share * self.total() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.iter()
            .find(|(_, n)| {
                seen += n;
                seen >= wanted
            })
            .map(|(ticks, _)| ticks)
    }

    /// The latencies below a limit.
    pub fn below(&self, limit: u32) -> Self {
        self.iter().filter(|(ticks, _)| *ticks < limit).collect()
    }

    /// These latencies and others.
    pub fn and(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }
}

/// The step of the counter: what all latencies are multiples of.
pub fn granularity<'a>(all: impl IntoIterator<Item = &'a Histogram>) -> u32 {
    let divisor = |a: u32, b: u32| {
        let (mut a, mut b) = (a, b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    all.into_iter().flat_map(Histogram::iter).fold(0, |found, (ticks, _)| divisor(found, ticks))
}
