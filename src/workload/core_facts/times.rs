//! Times of repetitions: the least of each half, and their agreement.

use super::curve::{Curve, both};
use super::rates::Rates;
use tma::measured::Open;

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
