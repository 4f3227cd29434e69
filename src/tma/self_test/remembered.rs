//! How many outcomes of branches a predictor remembers.
//!
//! A random sequence that repeats is predicted once it was seen often enough, if the predictor has room for it: 5,000 outcomes
//! on Emerald Rapids, 30,000 on Zen 5 (Lemire, "How many branches can your CPU predict?", 2026). So how often a program that
//! goes through the same data again and again is mispredicted depends on that room.

use serde::Serialize;

/// Logarithms of the lengths tested.
pub const LENGTHS: [u8; 9] = [8, 10, 11, 12, 13, 14, 15, 16, 17];

/// Measured rates of repeating random sequences.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Remembered {
    /// By length, shortest first; those that were measured.
    pub sequences: Vec<Sequence>,
}

/// A sequence of fair random outcomes of one branch, which repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sequence {
    /// Outcomes in one period.
    pub outcomes: u32,
    /// Mispredictions per execution once it was learnt as far as it is: lower quartile of the attempts.
    pub low: f64,
    /// The upper quartile.
    pub high: f64,
}

/// How large the tables of the model of predictors are: the logarithm of the entries of a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// It mispredicts repeating sequences as often as the processor, or more often.
    pub least: u32,
    /// It comes closest.
    pub typical: u32,
    /// As often, or less often.
    pub most: u32,
}

impl Default for Room {
    /// Not known: from less than a core of 2015 remembers to more than any does.
    fn default() -> Self {
        Self { least: SMALLEST, typical: 11, most: LARGEST }
    }
}

const SMALLEST: u32 = 7;
/// Remembers a sequence twice as long as the longest tested.
const LARGEST: u32 = 15;

/// Misprediction rates of a model with banks of 2^k entries for sequences of 2^(k + 3) outcomes, 2^(k + 4) and so on,
/// in the steady state (`branches::predictor`, whose tests check them): 0 for shorter ones, one half for longer ones.
pub const MODELLED_REPEATING: [f64; 6] = [0.0, 0.052, 0.295, 0.405, 0.460, 0.485];
/// The logarithm by which the first one is longer than a bank.
pub const FIRST_MODELLED: i32 = 3;

/// How far a measured rate may be off the model's, beside its own error: in executions, and as a share of it.
const CLOSE: f64 = 0.02;
const ALIKE: f64 = 0.1;

/// The model's rate of a sequence of `outcomes` with banks of 2^`size` entries.
fn modelled(outcomes: u32, size: u32) -> f64 {
    let longer = outcomes.ilog2() as i32 - size as i32 - FIRST_MODELLED;
    match usize::try_from(longer) {
        Err(_) => 0.0,
        Ok(at) => MODELLED_REPEATING.get(at).copied().unwrap_or(0.5),
    }
}

impl Remembered {
    /// The models between which this processor is: half as large and twice as large at least, as the branches of a program take
    /// other room than the test's.
    pub fn room(&self) -> Room {
        let all = || SMALLEST..=LARGEST;
        let each = |size: u32, holds: fn(&Sequence, f64) -> bool| {
            self.sequences.iter().all(|one| holds(one, modelled(one.outcomes, size)))
        };
        let distance = |size: u32| -> f64 {
            let of = |one: &Sequence| modelled(one.outcomes, size) - (one.low + one.high) / 2.0;
            self.sequences.iter().map(|one| of(one).powi(2)).sum()
        };
        // A processor that has room for all lengths tested may have more.
        let is_full = self.limit().1.is_some();
        let most = all().find(|size| {
            is_full && each(*size, |one, rate| rate <= (1.0 + ALIKE) * one.low + CLOSE)
        });
        let least = all()
            .rev()
            .find(|size| each(*size, |one, rate| rate >= (1.0 - ALIKE) * one.high - CLOSE));
        // Smaller and larger ones may fit all rates as well, each within its tolerance.
        let fitting = || {
            let is_near = |one: &Sequence, rate: f64| {
                let (low, high) = ((1.0 - ALIKE) * one.low, (1.0 + ALIKE) * one.high);
                (low - CLOSE..=high + CLOSE).contains(&rate)
            };
            all().filter(move |size| each(*size, is_near))
        };
        let first = fitting().next().map_or(LARGEST, |size| size - 1);
        let last = fitting().next_back().map_or(SMALLEST, |size| size + 1);
        // Where nothing decides, the usual one.
        let usual = Room::default().typical;
        let apart = |a: &u32, b: &u32| a.abs_diff(usual).cmp(&b.abs_diff(usual));
        let typical = all().min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then(apart(a, b)));
        let typical = typical.unwrap_or(usual);
        Room {
            least: least.unwrap_or(SMALLEST).min(first).min(typical - 1).max(SMALLEST),
            typical,
            most: most.unwrap_or(LARGEST).max(last).max(typical + 1).min(LARGEST),
        }
    }

    /// The longest sequence that is predicted, and the shortest that is not.
    pub fn limit(&self) -> (Option<&Sequence>, Option<&Sequence>) {
        /// A tenth of what guesses would mispredict.
        const PREDICTED: f64 = 0.05;
        let is_predicted = |one: &&Sequence| (one.low + one.high) / 2.0 < PREDICTED;
        let first = self.sequences.iter().find(|one| !is_predicted(one));
        let before = |one: &&Sequence| first.is_none_or(|first| one.outcomes < first.outcomes);
        (self.sequences.iter().rfind(before), first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rates: &[(u32, f64, f64)]) -> Remembered {
        let one = |(bits, low, high): &(u32, f64, f64)| Sequence {
            outcomes: 1 << bits,
            low: *low,
            high: *high,
        };
        Remembered { sequences: rates.iter().map(one).collect() }
    }

    /// Timed with a program of their own. Zen 4: all of 32,768 are predicted, a third of 65,536 are not; Emerald Rapids by
    /// Lemire: 5,000.
    #[test]
    fn the_model_is_as_large_as_what_the_processor_remembers() {
        let zen4 = of(&[(14, 0.0, 0.0), (15, 0.0, 0.006), (16, 0.29, 0.34), (17, 0.42, 0.45)]);
        assert_eq!(zen4.room(), Room { least: 10, typical: 11, most: 12 });
        let limit = zen4.limit();
        assert_eq!(limit.0.map(|one| one.outcomes), Some(1 << 15));
        assert_eq!(limit.1.map(|one| one.outcomes), Some(1 << 16));
        let emerald = of(&[(12, 0.0, 0.0), (13, 0.1, 0.15), (14, 0.35, 0.4), (15, 0.45, 0.48)]);
        let room = emerald.room();
        assert!((7..=8).contains(&room.least) && (9..=10).contains(&room.most), "{room:?}");
    }

    /// Unknown rates only widen the room.
    #[test]
    fn attempts_that_differ_and_answers_that_lack_widen_the_room() {
        let wide = of(&[(14, 0.0, 0.0), (15, 0.0, 0.3), (16, 0.1, 0.4), (17, 0.3, 0.5)]).room();
        assert!(wide.least <= 10 && wide.most >= 12, "{wide:?}");
        let short = of(&[(10, 0.0, 0.0)]).room();
        assert_eq!((short.typical, short.most), (11, LARGEST));
        // By hand: banks of 2^7 to 2^10 fit both.
        let apart = of(&[(10, 0.0, 0.0), (17, 0.5, 0.5)]).room();
        assert_eq!(apart, Room { least: SMALLEST, typical: 8, most: 11 });
        // By hand: a bank of 2^14 remembers 2^17.
        let all = of(&LENGTHS.map(|bits| (u32::from(bits), 0.0, 0.0))).room();
        assert!(all.least >= 13 && all.most == LARGEST, "{all:?}");
        let none = of(&LENGTHS.map(|bits| (u32::from(bits), 0.5, 0.5)));
        assert_eq!(none.room(), Room { least: SMALLEST, typical: SMALLEST, most: SMALLEST + 1 });
    }
}
