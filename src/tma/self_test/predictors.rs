//! Branch predictor behaviour in which processors differ: how often a random branch that goes one way more often is
//! mispredicted, and how many outcomes a predictor remembers.
//!
//! No predictor can know a random outcome, but predictors with long histories learn patterns that mean nothing, and then
//! mispredict more often than the rarer outcome occurs: on a Redwood Cove a branch that goes the rarer way in 1 of 8
//! executions by about 60 %.
//!
//! A random sequence that repeats is predicted once it was seen often enough, if the predictor has room for it: 5,000 outcomes
//! on Emerald Rapids, 30,000 on Zen 5 (Lemire, "How many branches can your CPU predict?", 2026). So how often a program that
//! goes through the same data again and again is mispredicted depends on that room.

use super::targets::{Rule, SeveralTargets, TargetHistory};
use serde::{Deserialize, Serialize};

/// Behaviour of the predictors, as the model takes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// For several targets of an indirect branch; either where it is not known.
    pub targets: Option<Rule>,
    /// For indirect calls.
    pub calls: TargetHistory,
    /// For indirect jumps.
    pub jumps: TargetHistory,
    /// Whether the history has where functions return, and where cases jump on; either where it is not known.
    pub apart: Option<bool>,
    /// Whether targets of which that is not known count as alike.
    pub alike: bool,
    /// How often several random targets are mispredicted.
    pub several: SeveralTargets,
    /// For returns below the return stack.
    pub returns: Below,
    /// For random branches that go one way more often; the model's where that is not known.
    pub biased: Option<Biased>,
    /// How much is remembered.
    pub room: Room,
}

/// Mispredictions for each return of nested calls that the stack of return addresses has no room for, beyond those of
/// calls from one place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Returns {
    /// The calls come from two places alternately.
    pub alternate: f64,
    /// From two places in a pattern of five.
    pub fives: f64,
}

/// Prediction of returns below the return stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Below {
    /// The oldest address that the stack has, again and again: measured on Zen 5.
    #[default]
    Oldest,
    /// Whatever the stack holds there when it is read around its end, the addresses of the calls as many levels further
    /// in as it has room for: measured on Zen 4. Patterns whose period divides that are predicted.
    Around,
    /// As an indirect jump, by the history.
    History,
}

impl Returns {
    /// The rule that both show. A stack of 32 mispredicts one half and at least a third of them where it mispredicts at all.
    pub fn rule(&self) -> Option<Below> {
        /// A return costs less than the branch it is compared with.
        const IS_MISPREDICTED: f64 = 0.2;
        const IS_PREDICTED: f64 = 0.1;
        let shown = |share: f64| match share {
            _ if share > IS_MISPREDICTED => Some(true),
            _ if share < IS_PREDICTED => Some(false),
            _ => None,
        };
        match (shown(self.alternate)?, shown(self.fives)?) {
            (true, true) => Some(Below::Oldest),
            (false, true) => Some(Below::Around),
            (false, false) => Some(Below::History),
            (true, false) => None,
        }
    }
}

/// Shares, as the measured branches have them: the rarer outcome once in this many executions.
pub const ONE_IN: [u32; 6] = [2, 4, 8, 16, 32, 64];

/// Measured rates.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Biased {
    /// By share, most random first; those that were measured.
    pub rates: Vec<Rate>,
}

/// The rates of one share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// The rarer outcome comes once in this many executions.
    pub one_in: u32,
    /// Mispredictions per execution where the history holds the branch's own outcomes and its loop's.
    pub alone: Option<f64>,
    /// Mispredictions per execution after branches that always go one way, so that the history holds few outcomes of
    /// its own.
    pub among: Option<f64>,
}

/// Misprediction rates of the model of predictors (`branches::predictor`, whose tests check them) for the same
/// branches: `one_in`, alone, among others.
pub const MODELLED: [(u32, f64, f64); 6] = [
    (2, 0.499, 0.502),
    (4, 0.265, 0.290),
    (8, 0.134, 0.142),
    (16, 0.066, 0.062),
    (32, 0.032, 0.032),
    (64, 0.016, 0.017),
];

impl Biased {
    /// The rate of a share, where the history holds its own outcomes.
    pub fn alone(&self, one_in: u32) -> Option<f64> {
        self.rates.iter().find(|rate| rate.one_in == one_in)?.alone
    }

    /// By how much a random branch with this share of rarer outcomes (0 to 0.5) is mispredicted more often than the model
    /// says: the mean of both kinds of history, between the measured shares by the logarithm, beyond them as at the last.
    pub fn factor(&self, share: f64) -> f64 {
        let mut last = (2.0_f64.log2(), 1.0);
        let at = (1.0 / share).log2();
        if !at.is_finite() || at <= last.0 {
            return 1.0;
        }
        for (place, factor) in self.factors() {
            if at <= place {
                let part = (at - last.0) / (place - last.0);
                return last.1 + part * (factor - last.1);
            }
            last = (place, factor);
        }
        last.1
    }

    /// Logarithm of the share, and the factor there; without a half, of which all predictors are wrong alike.
    fn factors(&self) -> impl Iterator<Item = (f64, f64)> {
        self.rates.iter().filter(|rate| rate.one_in > 2).filter_map(|rate| {
            let (_, alone, among) = MODELLED.iter().find(|(one_in, ..)| *one_in == rate.one_in)?;
            let both = [rate.alone.map(|r| r / alone), rate.among.map(|r| r / among)];
            let known: Vec<f64> = both.into_iter().flatten().collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            (!known.is_empty()).then_some((f64::from(rate.one_in).log2(), mean))
        })
    }
}

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
