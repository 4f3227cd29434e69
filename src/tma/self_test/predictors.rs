//! Branch predictor behaviour in which processors differ.

use super::biased::Biased;
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
