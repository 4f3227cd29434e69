//! Two commands that ran in turns, compared round by round: other work of the machine disturbs both runs of a round, and
//! a disturbed round moves no median far.

use serde::{Deserialize, Serialize};

/// Chance that the median is beyond an end of the interval.
const BEYOND: f64 = 0.025;

/// What a run of the second command takes, as a multiple of that of the first in the same round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Rounds.
    pub rounds: usize,
    /// The median of the ratios.
    pub ratio: f64,
    /// The ends of its 95 % interval, by the sign test: ratios between which at least 95 % of the medians of as many
    /// rounds are. Absent with less than 6 rounds, of which all may be on one side by chance.
    pub interval: Option<(f64, f64)>,
}

impl Paired {
    /// Of values above 0, in the order of the rounds.
    pub fn of(first: &[f64], second: &[f64]) -> Option<Self> {
        let both = first.iter().zip(second).filter(|(a, b)| **a > 0.0 && **b > 0.0);
        let mut ratios: Vec<f64> = both.map(|(a, b)| b / a).collect();
        ratios.sort_by(f64::total_cmp);
        let rounds = ratios.len();
        let middle = (ratios.get(rounds.checked_sub(1)? / 2)?, ratios.get(rounds / 2)?);
        let interval = left_out(rounds).map(|less| (ratios[less], ratios[rounds - 1 - less]));
        Some(Self { rounds, ratio: f64::midpoint(*middle.0, *middle.1), interval })
    }

    /// Whether the second command takes less time for certain, or more.
    pub fn is_clear(&self) -> bool {
        self.interval.is_some_and(|(low, high)| high < 1.0 || low > 1.0)
    }
}

/// How many of so many sorted values are beyond each end of the interval.
fn left_out(rounds: usize) -> Option<usize> {
    // Chances of the number of values below the median: binomial, with one half.
    let mut chance = 0.5_f64.powi(i32::try_from(rounds).ok()?);
    let (mut sum, mut less) = (chance, 0);
    if sum > BEYOND {
        return None;
    }
    loop {
        chance *= (rounds - less) as f64 / (less + 1) as f64;
        sum += chance;
        if sum > BEYOND {
            return Some(less);
        }
        less += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W. J. Conover, Practical Nonparametric Statistics (1999), table of the sign test: 6 values have none left out, 9 one,
    /// 15 three, 20 five.
    #[test]
    fn the_interval_is_that_of_the_sign_test() {
        let all = [5, 6, 8, 9, 12, 15, 20].map(left_out);
        assert_eq!(all, [None, Some(0), Some(0), Some(1), Some(2), Some(3), Some(5)]);
    }

    /// By hand: a disturbed round does not matter, and of five no more is known than the median.
    #[test]
    fn a_disturbed_round_moves_no_median_far() {
        let first = [10.0; 10];
        let mut second = [9.0, 9.1, 8.9, 9.0, 9.2, 8.8, 9.0, 9.1, 8.9, 9.0];
        let quiet = Paired::of(&first, &second).unwrap();
        assert!((quiet.ratio - 0.9).abs() < 1e-12 && quiet.is_clear(), "{quiet:?}");
        second[3] = 90.0;
        let disturbed = Paired::of(&first, &second).unwrap();
        assert!((disturbed.ratio - 0.9).abs() < 0.011 && disturbed.is_clear(), "{disturbed:?}");
        let few = Paired::of(&first[..5], &second[..5]).unwrap();
        assert!(few.interval.is_none() && !few.is_clear());
        assert_eq!(Paired::of(&[], &[]), None);
        assert_eq!(Paired::of(&[0.0], &[1.0]), None, "a run without time");
    }
}
