//! Times of repetitions: the least of each half, and their agreement; times by size, and their steps.

use tma::measured::Open;

/// Cycles per instruction or pair.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// The faster of loads of 8 and of 16 bytes.
    pub load: Option<f64>,
    /// A store of 8 bytes to one line.
    pub store: Option<f64>,
    /// A chain of a store and a load through the same register and displacement.
    pub slot: Option<f64>,
    /// As `slot`, with a load of the upper half: no core replaces it by the stored register.
    pub half: Option<f64>,
}

/// Times of one repetition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    /// Cycles per load by bytes walked over.
    pub walk: Curve,
    /// Cycles per load of a flushed line.
    pub flushed: Option<f64>,
    /// Bytes of pages whose translations cost nothing; infinite if translations cover many pages.
    pub reach: f64,
    /// Cycles per instruction by their number, for instructions of four bytes.
    pub short_code: Curve,
    /// As `short_code`, for six bytes.
    pub long_code: Curve,
    /// Loads, stores and pairs.
    pub rates: Rates,
    /// Cycles of two misses by the number of instructions in between: nops, additions, additions
    /// and vector operations.
    pub windows: [Curve; 3],
}

/// Times of all repetitions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Repetitions {
    /// Times of each repetition.
    pub repeats: Vec<Times>,
    /// Most bytes walked over.
    pub walked: u64,
    /// Why there is no walk.
    pub no_memory: Option<Open>,
}

/// Repetitions that agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Same {
    pub least: f64,
    pub most: f64,
}

/// Fewest repetitions that must agree.
const AGREE: usize = 2;
/// The largest group of repetitions within the share `close`, at least two.
pub(super) fn agreed(found: &[f64], close: f64) -> Result<Same, Open> {
    let mut all: Vec<f64> = found.iter().copied().filter(|one| one.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    let end =
        |from: usize| all.iter().rposition(|one| *one <= all[from] * (1.0 + close)).unwrap_or(from);
    let group = (0..all.len()).map(|from| (end(from) + 1 - from, from)).max_by_key(|group| group.0);
    match (group, all.first(), all.last()) {
        (Some((many, from)), ..) if many >= AGREE => {
            Ok(Same { least: all[from], most: all[from + many - 1] })
        }
        (_, Some(least), Some(most)) => Err(Open::Disagree { least: *least, most: *most }),
        _ => Err(Open::NotMeasured),
    }
}

/// The least times of the even and of the odd repetitions, since contention only adds: agreement of
/// both halves is not by chance.
pub(super) fn halves(repeats: &[Times]) -> Vec<Times> {
    let half = |odd: usize| {
        let own = repeats.iter().skip(odd).step_by(2);
        own.cloned().reduce(Times::least)
    };
    (0..AGREE).filter_map(half).collect()
}

impl Times {
    /// The lower times of two repetitions.
    fn least(self, other: Self) -> Self {
        let min = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).min_by(f64::total_cmp);
        let rates = Rates {
            load: min(self.rates.load, other.rates.load),
            store: min(self.rates.store, other.rates.store),
            slot: min(self.rates.slot, other.rates.slot),
            half: min(self.rates.half, other.rates.half),
        };
        let [a, b, c] = self.windows;
        let [d, e, f] = other.windows;
        Self {
            walk: both(self.walk, other.walk),
            flushed: min(self.flushed, other.flushed),
            reach: self.reach.max(other.reach),
            short_code: both(self.short_code, other.short_code),
            long_code: both(self.long_code, other.long_code),
            rates,
            windows: [both(a, d), both(b, e), both(c, f)],
        }
    }
}

/// Sizes, ascending, and their cycles.
pub type Curve = Vec<(f64, f64)>;

/// Bounds each time by those of larger sizes, since contention only adds.
pub(super) fn lower_envelope(curve: &[(f64, f64)]) -> Curve {
    let mut least = f64::INFINITY;
    let mut found: Curve = curve
        .iter()
        .rev()
        .map(|(size, cycles)| {
            least = least.min(*cycles);
            (*size, least)
        })
        .collect();
    found.reverse();
    found
}

/// The lower of two curves at each size.
pub(super) fn both(one: Curve, other: Curve) -> Curve {
    let mut all = one;
    all.extend(other);
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    all.dedup_by_key(|point| point.0);
    all
}

/// A stretch of sizes with about one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plateau {
    /// The least size and the largest.
    pub from: f64,
    pub to: f64,
    /// Its time: that of its larger half, less mixed with the time before.
    pub cycles: f64,
    /// Range of its times.
    pub spread: f64,
}

/// Largest difference of times in a plateau, as a share, and its least ratio of sizes.
const FLAT: f64 = 0.12;
const LONG: f64 = 2.0;
/// Plateaus within this ratio of times are one, divided by noise.
const ALIKE: f64 = 1.25;

/// The plateaus of a curve, ascending.
pub(super) fn plateaus(curve: &[(f64, f64)]) -> Vec<Plateau> {
    let all = lower_envelope(curve);
    let mut found: Vec<Plateau> = Vec::new();
    let mut first = 0;
    while first < all.len() {
        let last = first
            + all[first..].iter().take_while(|p| p.1 <= all[first].1 * (1.0 + FLAT)).count()
            - 1;
        let (from, to) = (all[first].0, all[last].0);
        if to < LONG * from {
            first += 1;
            continue;
        }
        let cycles = all[(first + last).div_ceil(2)].1;
        let spread = all[last].1 - all[first].1;
        match found.last_mut() {
            Some(before) if cycles <= ALIKE * before.cycles => {
                let spread = all[last].1 - before.cycles + before.spread;
                *before = Plateau { to, cycles, spread, ..*before };
            }
            _ => found.push(Plateau { from, to, cycles, spread }),
        }
        first = last + 1;
    }
    found
}

/// The step of times that grow with size: the least size above the middle of both sides. It happens
/// within a ratio of sizes of `within`, by at least `at_least` of the lower side.
pub(super) fn step(curve: &[(f64, f64)], within: f64, at_least: f64) -> Option<f64> {
    let all = lower_envelope(curve);
    let rise = |at: usize| {
        let end = all.iter().rposition(|p| p.0 <= within * all[at].0).unwrap_or(at);
        (all[end].1 - all[at].1, at, end)
    };
    let (height, from, to) = (0..all.len()).map(rise).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let low = all.first()?.1;
    // The last size may be in the middle of a step, whose height is then unknown.
    if height < at_least * low || to + 1 == all.len() {
        return None;
    }
    let middle = all[from].1 + height / 2.0;
    all[from..=to].iter().find(|p| p.1 >= middle).map(|p| p.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_neighbour_added_is_taken_away_by_larger_sizes() {
        assert_eq!(
            lower_envelope(&[(1.0, 9.0), (2.0, 4.0), (3.0, 5.0)]),
            [(1.0, 4.0), (2.0, 4.0), (3.0, 5.0)]
        );
    }

    #[test]
    fn the_least_of_two_curves_is_that_of_each_size() {
        let found = both(vec![(1.0, 4.0), (2.0, 9.0)], vec![(1.0, 5.0), (2.0, 6.0), (3.0, 7.0)]);
        assert_eq!(found, [(1.0, 4.0), (2.0, 6.0), (3.0, 7.0)]);
    }

    /// By hand: 4 up to 8, 12 from 11 to 32, and one outlier.
    #[test]
    fn two_plateaus_and_their_ends() {
        let curve = [
            (2.0, 4.0),
            (4.0, 4.1),
            (8.0, 4.0),
            (11.0, 11.6),
            (16.0, 30.0),
            (22.0, 12.0),
            (32.0, 12.2),
        ];
        let found = plateaus(&curve);
        assert_eq!(
            found.iter().map(|p| (p.to, p.cycles)).collect::<Vec<_>>(),
            [(8.0, 4.0), (32.0, 12.0)]
        );
    }

    #[test]
    fn a_step_is_where_its_middle_is_passed_and_a_slope_is_none() {
        let sharp: Curve =
            (1..100).map(|n| (f64::from(n), if n < 40 { 100.0 } else { 200.0 })).collect();
        assert_eq!(step(&sharp, 1.3, 0.4), Some(40.0));
        let slope: Curve = (1..100).map(|n| (f64::from(n), 100.0 + f64::from(n))).collect();
        assert_eq!(step(&slope, 1.3, 0.4), None);
        let cut = &sharp[..40];
        assert_eq!(step(cut, 1.3, 0.4), None, "it may go on");
        assert_eq!(step(&[], 1.3, 0.4), None);
    }
}
