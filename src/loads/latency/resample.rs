//! The sampling error of a histogram: what another sample of the same size might have been.

use super::histogram::Histogram;
use fastrand::Rng;

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
