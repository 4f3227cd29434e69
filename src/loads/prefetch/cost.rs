//! Cycles of an iteration without misses (IC), from peaks of their histogram.
//!
//! Peaks are found by the continuous wavelet transform over several widths, as scipy's `find_peaks_cwt`, which APT-GET
//! uses (Jamilan et al., EuroSys 2022): a peak is a maximum of the transform with the Ricker wavelet that several
//! neighbouring widths agree on (Du, Kibbe and Lin, "Improved peak detection in mass spectrum", Bioinformatics 2006).

use super::refusal::Missing;
use std::collections::BTreeMap;

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

/// A peak has at least this share of all values.
pub const LEAST_SHARE: f64 = 0.02;
/// Widths in bins, each about 1.4 times the one before.
const WIDTHS: [f64; 11] = [1.0, 1.4, 2.0, 2.8, 4.0, 5.7, 8.0, 11.3, 16.0, 22.6, 32.0];
/// Neighbouring widths that must agree.
const AGREE: usize = 3;
/// A maximum exceeds what chance makes of as many values (a Poisson distribution in each bin) by this factor.
const OVER_CHANCE: f64 = 3.0;
/// The wavelet is cut off after this many widths.
const REACH: f64 = 5.0;
/// Most bins; wider distributions have several values in a bin.
const MOST_BINS: u64 = 8192;
/// Values above this share of all are left out when bins are chosen: interrupts.
const USUAL: f64 = 0.995;

/// A peak of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// The most frequent value of it.
    pub at: u64,
    /// Share of all values that lie nearer to it than to other peaks, and not far from it.
    pub share: f64,
}

/// The peaks of values with their counts, ascending.
///
/// ```
/// use loads::prefetch::peaks;
///
/// let iterations = [(79, 20), (80, 300), (81, 90), (229, 40), (230, 100), (400, 5), (650, 60)];
/// let found: Vec<u64> = peaks(&iterations).iter().map(|peak| peak.at).collect();
/// assert_eq!(found, [80, 230, 650], "400 has less than 2 %");
/// ```
pub fn peaks(values: &[(u64, u64)]) -> Vec<Peak> {
    let all: u64 = values.iter().map(|(_, n)| n).sum();
    let bin = bin(values, all);
    let mut bins: BTreeMap<i64, f64> = BTreeMap::new();
    for (value, n) in values {
        *bins.entry(number(*value, bin)).or_default() += *n as f64;
    }
    let maxima: Vec<Vec<i64>> = WIDTHS.iter().map(|width| maxima(&bins, *width)).collect();
    let centres = ridges(&maxima);
    let mut found: Vec<Peak> = centres
        .iter()
        .filter_map(|(centre, reach)| {
            let off = |value: u64| number(value, bin).abs_diff(*centre);
            let first = values.partition_point(|(value, _)| {
                number(*value, bin) < *centre && off(*value) > *reach
            });
            let own = values.iter().skip(first).take_while(|(value, _)| off(*value) <= *reach);
            own.max_by_key(|(value, n)| (*n, std::cmp::Reverse(off(*value))))
                .map(|(at, _)| Peak { at: *at, share: 0.0 })
        })
        .collect();
    found.sort_by_key(|peak| peak.at);
    found.dedup_by_key(|peak| peak.at);
    // Values are those of the nearest peak; dropping one gives its values to no other.
    for (value, n) in values {
        let after = found.partition_point(|peak| peak.at < *value);
        let near_by = found.iter_mut().skip(after.saturating_sub(1)).take(2);
        let nearest = near_by.min_by_key(|peak| peak.at.abs_diff(*value));
        if let Some(peak) = nearest.filter(|peak| peak.at.abs_diff(*value) <= near(peak.at, bin)) {
            peak.share += *n as f64 / all as f64;
        }
    }
    found.retain(|peak| peak.share >= LEAST_SHARE);
    found
}

/// How far from a peak its values may lie: an eighth of it, and at least 2.
fn near(at: u64, bin: u64) -> u64 {
    (at / 8).max(2 * bin)
}

/// The number of the bin of a value.
fn number(value: u64, bin: u64) -> i64 {
    i64::try_from(value / bin).unwrap_or(i64::MAX)
}

/// Values that share a bin.
fn bin(values: &[(u64, u64)], all: u64) -> u64 {
    let mut below = 0.0;
    let usual = values.iter().find(|(_, n)| {
        below += *n as f64;
        below >= USUAL * all as f64
    });
    usual.map_or(1, |(value, _)| value / MOST_BINS + 1)
}

/// The Ricker wavelet, up to a constant factor.
fn ricker(distance: f64, width: f64) -> f64 {
    let square = (distance / width).powi(2);
    (1.0 - square) * (-square / 2.0).exp() / width.sqrt()
}

/// The maxima of the transform that chance does not explain. Values beyond the bins add nothing: the time is linear
/// in the bins, however many values there are.
fn maxima(bins: &BTreeMap<i64, f64>, width: f64) -> Vec<i64> {
    let reach = (REACH * width) as i64;
    let factors: Vec<f64> =
        (-reach..=reach).map(|distance| ricker(distance as f64, width)).collect();
    let inside = || bins.range(..2 * MOST_BINS as i64);
    let Some((last, _)) = inside().next_back() else { return Vec::new() };
    // Position `reach` holds bin 0; one more at each end has no neighbour.
    let mut transform = vec![(0.0, 0.0); (last + 2 * reach + 3) as usize];
    for (at, n) in inside() {
        let from = (*at + 1) as usize;
        for (entry, factor) in transform.iter_mut().skip(from).zip(&factors) {
            entry.0 += factor * n;
            entry.1 += factor * factor * n;
        }
    }
    let exceeds = |(sum, variance): (f64, f64)| sum > OVER_CHANCE * variance.sqrt();
    let tops = transform.windows(3).enumerate().filter(|(_, near)| match near {
        [before, own, after] => own.0 > before.0 && own.0 >= after.0 && exceeds(*own),
        _ => false,
    });
    tops.map(|(number, _)| number as i64 - reach).collect()
}

/// Maxima that neighbouring widths share: the position at the smallest of them, and how far its values may lie
/// from it.
fn ridges(maxima: &[Vec<i64>]) -> Vec<(i64, u64)> {
    struct Ridge {
        at: i64,
        first: usize,
        length: usize,
        last: usize,
    }
    let mut ridges: Vec<Ridge> = Vec::new();
    for (number, (found, width)) in maxima.iter().zip(WIDTHS).enumerate() {
        for at in found {
            let near = |ridge: &&mut Ridge| {
                ridge.last + 1 == number && (ridge.at - at).abs() as f64 <= width.max(1.0)
            };
            match ridges.iter_mut().filter(near).min_by_key(|ridge| (ridge.at - at).abs()) {
                Some(ridge) => (ridge.length, ridge.last) = (ridge.length + 1, number),
                None => ridges.push(Ridge { at: *at, first: number, length: 1, last: number }),
            }
        }
    }
    let long = ridges.into_iter().filter(|ridge| ridge.length >= AGREE);
    long.map(|ridge| (ridge.at, WIDTHS[ridge.first].ceil() as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(values: &[(u64, u64)]) -> Vec<u64> {
        peaks(values).iter().map(|peak| peak.at).collect()
    }

    /// Iterations that vary: a normal distribution has one peak, two that overlap little have two.
    #[test]
    fn wide_peaks_are_found() {
        let normal = |centre: f64, width: f64, n: f64, at: u64| {
            (n * (-((at as f64 - centre) / width).powi(2) / 2.0).exp()).round() as u64
        };
        let one: Vec<(u64, u64)> =
            (0..200).map(|at| (at, normal(60.0, 6.0, 50.0, at))).filter(|v| v.1 > 0).collect();
        assert_eq!(at(&one), [60]);
        let two: Vec<(u64, u64)> = (0..400)
            .map(|at| (at, normal(60.0, 6.0, 50.0, at) + normal(300.0, 15.0, 20.0, at)))
            .filter(|v| v.1 > 0)
            .collect();
        assert_eq!(at(&two), [60, 300]);
    }

    #[test]
    fn few_values_have_no_peaks() {
        assert_eq!(at(&[]), [0; 0]);
        assert_eq!(at(&[(80, 3), (91, 2)]), [0; 0]);
    }

    /// Many values, near and far: milliseconds in a build that is not optimised.
    #[test]
    fn wide_distributions_take_little_time() {
        let wide: Vec<(u64, u64)> = (0..60_000).map(|at| (at * 7, 1 + at % 3)).collect();
        let began = std::time::Instant::now();
        peaks(&wide);
        assert!(began.elapsed().as_secs() < 10);
        assert_eq!(at(&[(80, 9000), (u64::MAX, 9)]), [80], "one is beyond all bins");
    }

    #[test]
    fn close_peaks_are_told_apart_and_long_times_do_not_hide_short_ones() {
        assert_eq!(at(&[(1, 400), (2, 100), (9, 300), (70_000, 2)]), [1, 9]);
        assert_eq!(at(&[(23, 40), (24, 400), (25, 30), (30, 200), (31, 220)]), [24, 31]);
    }
}
