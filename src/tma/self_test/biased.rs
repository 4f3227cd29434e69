//! How often a random branch is mispredicted that goes one way more often than the other.
//!
//! No predictor can know a random outcome, but predictors with long histories learn patterns that mean nothing, and then
//! mispredict more often than the rarer outcome occurs: on a Redwood Cove a branch that goes the rarer way in 1 of 8
//! executions by about 60 %.

use serde::Serialize;

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
