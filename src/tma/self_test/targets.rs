//! How a processor predicts the targets of indirect branches, and how often it mispredicts them.

use serde::{Deserialize, Serialize};

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
    /// Share of these calls that are mispredicted; the functions differ in nothing but their addresses, as multiples of 16.
    pub in_turn: f64,
    /// The same of functions that return at other distances from their starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart: Option<f64>,
}

/// Targets of the indirect branches that are tested with several.
pub const SEVERAL: [u32; 3] = [2, 4, 8];

/// How often indirect branches with several targets, each as often, are mispredicted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SeveralTargets {
    /// Calls.
    pub calls: Several,
    /// Jumps.
    pub jumps: Several,
}

/// Mispredictions per execution by the number of targets ([`SEVERAL`]), where known; each counted as what one costs with two
/// random targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Several {
    /// At random; of two it is one half by definition.
    pub random: [Option<f64>; 3],
    /// In turn; the targets differ in nothing but their addresses, as multiples of 16.
    pub in_turn: [Option<f64>; 3],
}

impl Several {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// By how much more often, or at a higher cost, random targets are mispredicted than their number says, for a branch with
    /// this modelled share: of n targets 1 − 1/n.
    pub fn factor(&self, share: f64) -> f64 {
        let ideal = |targets: u32| 1.0 - 1.0 / f64::from(targets);
        let mut last = (ideal(2), 1.0);
        for (targets, rate) in SEVERAL.into_iter().zip(self.random).skip(1) {
            let at = ideal(targets);
            let Some(factor) = rate.map(|rate| rate / at) else { continue };
            if share <= at {
                let part = ((share - last.0) / (at - last.0)).max(0.0);
                return last.1 + part * (factor - last.1);
            }
            last = (at, factor);
        }
        last.1
    }

    /// How far that may be off, relative, where the self-test has no rate of so many targets.
    pub fn error(&self, share: f64) -> f64 {
        /// As far as the cost of any misprediction; on a Zen 4 the rates are 0.97 to 1.06 of the ideal ones.
        const UNKNOWN: f64 = 0.15;
        let ideal = |targets: u32| 1.0 - 1.0 / f64::from(targets);
        let all = SEVERAL.into_iter().zip(self.random).skip(1);
        let own = all.clone().find(|(targets, _)| share <= ideal(*targets)).or(all.last());
        let towards = (share - ideal(2)) / (ideal(4) - ideal(2));
        if own.is_some_and(|(_, rate)| rate.is_some()) {
            0.0
        } else {
            UNKNOWN * towards.clamp(0.0, 1.0)
        }
    }
}

/// Whether the history by which targets are predicted has those of indirect calls, or of jumps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TargetHistory {
    /// Not known: it may.
    #[default]
    Unknown,
    /// It does: targets in turn are predicted.
    With,
    /// It has the lowest four bits of their addresses only, as measured on a Zen 3 and a Zen 4
    /// (`tests/figures/call_history.py`). Compilers align functions to 16 bytes, so that only other branches between them
    /// identify the next one.
    Low,
}

/// A share above the first is mispredicted, one below the second predicted. Without the targets in the history the last
/// target is always wrong, the most frequent one half of the times.
const IS_MISPREDICTED: f64 = 0.25;
const IS_PREDICTED: f64 = 0.1;

impl TargetHistory {
    /// The history that all of these shares of targets in turn show.
    pub fn of(in_turn: impl Iterator<Item = f64>) -> Self {
        let one = |share: f64| match share {
            _ if share > IS_MISPREDICTED => Self::Low,
            _ if share < IS_PREDICTED => Self::With,
            _ => Self::Unknown,
        };
        in_turn.map(one).reduce(|a, b| if a == b { a } else { Self::Unknown }).unwrap_or_default()
    }
}

impl Calls {
    /// Whether the history has where functions return.
    pub fn tells_apart(&self) -> Option<bool> {
        match self.apart? {
            share if share > IS_MISPREDICTED => Some(false),
            share if share < IS_PREDICTED => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of four targets one half more than 3/4, and half way to that at 5/8; of eight as often as 7/8.
    #[test]
    fn random_targets_are_corrected_by_their_number() {
        let several = Several { random: [None, Some(1.125), Some(0.875)], ..Several::default() };
        let near = |share, factor: f64| assert!((several.factor(share) - factor).abs() < 1e-9);
        near(0.1, 1.0);
        near(0.5, 1.0);
        near(0.625, 1.25);
        near(0.75, 1.5);
        near(0.875, 1.0);
        near(1.0, 1.0);
        assert_eq!(Several::default().factor(0.75), 1.0);
        // Of two there is nothing to ask; what is not known of more may be otherwise.
        assert_eq!([0.5, 0.625, 0.75, 0.8, 1.0].map(|share| several.error(share)), [0.0; 5]);
        let unknown = [0.5, 0.625, 0.875].map(|share| Several::default().error(share));
        assert_eq!(unknown, [0.0, 0.075, 0.15]);
        let of = |shares: &[f64]| TargetHistory::of(shares.iter().copied());
        assert_eq!(of(&[0.9, 0.3, 1.0]), TargetHistory::Low);
        assert_eq!(of(&[0.01, -0.02]), TargetHistory::With);
        assert_eq!((of(&[0.01, 0.9]), of(&[])), (TargetHistory::Unknown, TargetHistory::Unknown));
    }
}
