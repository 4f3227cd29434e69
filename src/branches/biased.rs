//! Corrects what the model says of random branches that go one way more often, by how often this processor mispredicts
//! such branches in its self-test.

use crate::predictor::Tally;
use tma::self_test::Biased;

/// By how much more often than the model says a branch is mispredicted that did this.
///
/// Only what is random is corrected: a branch whose rarer outcomes the model predicts is as predictable for the processor.
/// Half predictable, half corrected.
pub fn factor(biased: &Biased, tally: &Tally) -> f64 {
    random(tally).map_or(1.0, |(rarer, random)| 1.0 + random * (biased.factor(rarer) - 1.0))
}

/// The most that [`factor`] may be where nothing was measured: twice for branches that go the rarer way in a quarter of
/// their executions or less (1.3 to 1.7 times was measured, `tests/processors/self-tests`), once for fair ones.
pub fn most(tally: &Tally) -> f64 {
    random(tally)
        .map_or(1.0, |(rarer, random)| 1.0 + random * (-rarer.log2() - 1.0).clamp(0.0, 1.0))
}

/// The share of a branch's rarer outcome, and how far it is random: 1 where it is mispredicted as often as that comes, or
/// more often.
fn random(tally: &Tally) -> Option<(f64, f64)> {
    let modelled = tally.mispredicted_share()?;
    let rarer = tally.taken.min(tally.executions - tally.taken) as f64 / tally.executions as f64;
    (rarer > 0.0).then(|| (rarer, (modelled / rarer).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma::self_test::{MODELLED, Rate};

    fn measured(times: f64) -> Biased {
        let rate = |(one_in, alone, _): (u32, f64, f64)| Rate {
            one_in,
            alone: Some(if one_in == 2 { alone } else { alone * times }),
            among: None,
        };
        Biased { rates: MODELLED.into_iter().map(rate).collect() }
    }

    /// By hand: at 1/8 everything random is 1.5 times as frequent; half of it predictable, 1.25 times; fair and predictable
    /// branches as the model has them.
    #[test]
    fn only_what_is_random_and_biased_is_corrected() {
        let of = |taken, mispredicted| {
            factor(&measured(1.5), &Tally { executions: 800, taken, mispredicted })
        };
        assert!((of(100, 110) - 1.5).abs() < 1e-9 && (of(700, 100) - 1.5).abs() < 1e-9);
        assert!((of(100, 50) - 1.25).abs() < 1e-9);
        assert_eq!((of(100, 0), of(0, 0), of(400, 400)), (1.0, 1.0, 1.0));
        // Between 1/2 and 1/4, by the logarithm: 1/2.83 is half of the way.
        let most = |taken, mispredicted| most(&Tally { executions: 800, taken, mispredicted });
        assert!((most(100, 100) - 2.0).abs() < 1e-9 && (most(200, 100) - 1.5).abs() < 1e-9);
        assert_eq!((most(400, 400), most(100, 0), most(0, 0)), (1.0, 1.0, 1.0));
        let between = of(283, 300);
        assert!((between - 1.25).abs() < 0.01, "{between}");
        assert_eq!(factor(&measured(1.5), &Tally::default()), 1.0);
    }
}
