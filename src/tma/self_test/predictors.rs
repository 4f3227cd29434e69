//! Branch predictor behaviour in which processors differ, and how often a random branch is mispredicted that goes one way
//! more often than the other.
//!
//! No predictor can know a random outcome, but predictors with long histories learn patterns that mean nothing, and then
//! mispredict more often than the rarer outcome occurs: on a Redwood Cove a branch that goes the rarer way in 1 of 8
//! executions by about 60 %.

use super::remembered::Room;
use serde::{Deserialize, Serialize};

/// Behaviour of the predictors, as the model takes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// For several targets of an indirect branch.
    pub targets: Rule,
    /// For indirect calls.
    pub calls: CallHistory,
    /// For returns below the return stack.
    pub returns: Below,
    /// For random branches that go one way more often; the model's where that is not known.
    pub biased: Option<Biased>,
    /// How much is remembered.
    pub room: Room,
}

/// How often an indirect jump is mispredicted that takes, at random, one of two targets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Targets {
    /// The rarer one a quarter of the times.
    pub quarter: f64,
    /// The rarer one an eighth of the times.
    pub eighth: f64,
}

/// Target that a processor predicts where nothing determines which is next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The target that was right most often: with targets of share p and 1 − p it is wrong with the
    /// lesser of both.
    #[default]
    MostFrequent,
    /// The last target: wrong with 2p (1 − p).
    Last,
}

impl Rule {
    /// Shares that are mispredicted of the two questions, a quarter and an eighth: as the model of predictors mispredicts
    /// them (`branches::predictor`, whose tests check it). Ideally the most frequent target is wrong with 25 and 12.5 %, the
    /// last one with 37.5 and 21.9 %; histories of random targets blur both.
    pub fn mispredicts(self) -> Targets {
        match self {
            Self::MostFrequent => Targets { quarter: 0.271, eighth: 0.135 },
            Self::Last => Targets { quarter: 0.346, eighth: 0.172 },
        }
    }
}

impl Targets {
    /// The rule that both shares show; `None` if they do not agree, or lie in the middle between both rules.
    pub fn rule(&self) -> Option<Rule> {
        /// How far from the middle, as a share of the distance between the rules.
        const CLEAR: f64 = 0.1;
        let (most_frequent, last) = (Rule::MostFrequent.mispredicts(), Rule::Last.mispredicts());
        let shown = |share: f64, most_frequent: f64, last: f64| {
            let towards_last = (share - most_frequent) / (last - most_frequent) - 0.5;
            let rule = if towards_last > 0.0 { Rule::Last } else { Rule::MostFrequent };
            (towards_last.abs() >= CLEAR).then_some(rule)
        };
        let quarter = shown(self.quarter, most_frequent.quarter, last.quarter)?;
        let eighth = shown(self.eighth, most_frequent.eighth, last.eighth)?;
        (eighth == quarter).then_some(quarter)
    }
}

/// How often an indirect call alternating between two functions is mispredicted, between which no conditional branch
/// differs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calls {
    /// Share of these calls that are mispredicted.
    pub in_turn: f64,
}

/// Whether the history by which targets are predicted has those of indirect calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallHistory {
    /// Not known: it may.
    #[default]
    Unknown,
    /// It does: alternately called functions are predicted.
    With,
    /// It has the lowest four bits of their addresses only, as measured on a Zen 3 (`tests/figures/call_history.py`).
    /// Compilers align functions to 16 bytes, so that only branches that differ between the calls identify the next
    /// one.
    Low,
}

impl Calls {
    /// The history that this share shows. Without these targets in the history the last target is always wrong, the
    /// most frequent one half of the times.
    pub fn history(&self) -> CallHistory {
        const IS_MISPREDICTED: f64 = 0.25;
        const IS_PREDICTED: f64 = 0.1;
        match self.in_turn {
            share if share > IS_MISPREDICTED => CallHistory::Low,
            share if share < IS_PREDICTED => CallHistory::With,
            _ => CallHistory::Unknown,
        }
    }
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
        /// More is mispredicted, less is predicted: a return costs less than the branch it is compared with.
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
