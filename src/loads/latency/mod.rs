//! Finds which caches serve a load, from the latencies of single executions between fences, in ticks of the
//! time-stamp counter: their histogram, its sampling error, and (`levels`) the shares of the levels, by the
//! latencies of loads of known levels on the same host.
//!
//! The counter advances in steps that may be longer than a hit takes, so that levels close to each other differ only in
//! how often each value comes, and thus in the mean. Memory is far from all caches.

mod levels;
#[cfg(test)]
mod tests;

use fastrand::Rng;
pub use levels::{Calibration, Level, Limits, Share, Unmeasured, limits, shares};
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
    /// Adds a latency.
    pub fn add(&mut self, ticks: u32) {
        *self.0.entry(ticks).or_default() += 1;
    }

    /// Latencies with their counts, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, u64)> {
        self.0.iter().map(|(ticks, n)| (*ticks, *n))
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

    /// The mean of the latencies up to that which 99 % do not exceed: without interrupts.
    pub fn usual(&self) -> Option<f64> {
        self.below(self.quantile(0.99)?.saturating_add(1)).mean()
    }

    /// The latencies below a limit.
    pub fn below(&self, limit: u32) -> Self {
        self.iter().filter(|(ticks, _)| *ticks < limit).collect()
    }
}

/// Latencies of one load, and those of a load from the first cache that was timed right before each: what
/// differs between two times and places, such as the processor's frequency, changes both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timed {
    /// Latencies of the word in the first cache.
    pub near: Histogram,
    /// Latencies of the load.
    pub load: Histogram,
}

impl Timed {
    /// From pairs of the two.
    pub fn of(pairs: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let (near, load): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
        Self { near: near.into_iter().collect(), load: load.into_iter().collect() }
    }

    /// The latencies of both.
    pub fn all(&self) -> [&Histogram; 2] {
        [&self.near, &self.load]
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

/// Counts from here on are drawn from the normal distribution.
const MANY: u64 = 40;

/// A histogram whose counts are drawn from Poisson distributions with these means.
pub(super) fn resample(of: &Histogram, random: &mut Rng) -> Histogram {
    of.iter().map(|(ticks, n)| (ticks, poisson(n, random))).filter(|(_, n)| *n > 0).collect()
}

fn poisson(mean: u64, random: &mut Rng) -> u64 {
    if mean >= MANY {
        let mean = mean as f64;
        return (mean + mean.sqrt() * normal(random)).round().max(0.0) as u64;
    }
    // Knuth, The Art of Computer Programming, volume 2, 3.4.1: exponential waiting times.
    let end = (-(mean as f64)).exp();
    let (mut product, mut n) = (random.f64(), 0);
    while product > end {
        product *= random.f64();
        n += 1;
    }
    n
}

/// Box and Muller, 1958.
fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}
