//! What mispredictions cost, and which of several targets is predicted.

use super::questions::Question::{self, Branch, Call, Jump, Second};
use super::questions::{EIGHTH, HALF, NEVER, OTHER, QUARTER};
use super::times::Times;
use tma::self_test::Targets;

/// How far two kinds of random branches may differ in what a misprediction costs.
const ALIKE: f64 = 0.2;

/// Cycles of a load that hits the L1 cache, on any core of the last twenty years: 3 to 6. Others are errors.
const LOAD: std::ops::RangeInclusive<f64> = 2.0..=8.0;

/// What branches that cannot be predicted take beyond one that is never taken, for each misprediction: they
/// go the rarer way half of the times and an eighth, and both must agree.
pub fn cost(times: &Times) -> Option<f64> {
    let predicted = times.get(Branch(NEVER))?;
    let half = (times.get(Branch(HALF))? - predicted) * 2.0;
    let eighth = (times.get(Branch(EIGHTH))? - predicted) * 8.0;
    let agree = half > 0.0 && (eighth / half - 1.0).abs() <= ALIKE;
    agree.then_some((half + eighth) / 2.0)
}

/// The same of a branch whose operands were there before the last branch: nothing is waited for.
pub fn ready_cost(times: &Times) -> Option<f64> {
    let cost = 2.0 * (times.get(Second(OTHER))? - times.get(Second(NEVER))?);
    (cost > 0.0).then_some(cost)
}

/// The same of indirect jumps to two targets alike: every predictor is wrong half of the times.
pub fn indirect_cost(times: &Times) -> Option<f64> {
    let cost = 2.0 * beyond(times, Jump(HALF))?;
    (cost > 0.0).then_some(cost)
}

/// What each further load adds that a branch waits for: an indirect call through two loads instead of none.
pub fn load_cost(times: &Times) -> Option<f64> {
    let through = 2.0 * (times.get(Call(HALF))? - times.get(Call(NEVER))?);
    let each = (through - indirect_cost(times)?) / 2.0;
    LOAD.contains(&each).then_some(each)
}

/// How often a jump is mispredicted that takes the rarer of two targets a quarter and an eighth of the times.
pub fn targets(times: &Times) -> Option<Targets> {
    let cost = indirect_cost(times)?;
    let share = |bits| Some(beyond(times, Jump(bits))? / cost);
    Some(Targets { quarter: share(QUARTER)?, eighth: share(EIGHTH)? })
}

/// Cycles above those of the jump that always has one target.
fn beyond(times: &Times, jump: Question) -> Option<f64> {
    Some(times.get(jump)? - times.get(Jump(NEVER))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tma::self_test::Rule;

    fn times(all: &[(Question, f64)]) -> Times {
        let cycles: BTreeMap<String, f64> = all.iter().map(|(q, c)| (q.name(), *c)).collect();
        Times { attempts: 1, cycles }
    }

    /// By hand: (21 − 10) × 2 = 22 and (12.8 − 10) × 8 = 22.4; with 15 instead, 40.
    #[test]
    fn a_misprediction_costs_what_both_kinds_of_branches_say() {
        let of = |eighth| {
            let all = [(Branch(NEVER), 10.0), (Branch(HALF), 21.0), (Branch(EIGHTH), eighth)];
            cost(&times(&all))
        };
        assert!((of(12.8).unwrap() - 22.2).abs() < 1e-9);
        assert_eq!(of(15.0), None);
    }

    /// By hand: (28.5 − 17.5) × 2.
    #[test]
    fn what_a_second_branch_adds_is_the_cost_without_waiting() {
        let all = [(Second(NEVER), 17.5), (Second(OTHER), 28.5)];
        assert_eq!(ready_cost(&times(&all)), Some(22.0));
        assert_eq!(ready_cost(&times(&all[..1])), None);
    }

    /// By hand: ((31 − 15) × 2 − (22 − 10) × 2) ÷ 2 = 4; 14 cycles a load are no time of a load.
    #[test]
    fn a_load_costs_what_a_call_through_two_adds() {
        let of = |call| {
            let calls = [(Call(NEVER), 15.0), (Call(HALF), call)];
            let jumps = [(Jump(NEVER), 10.0), (Jump(HALF), 22.0)];
            load_cost(&times(&[calls, jumps].concat()))
        };
        assert_eq!(of(31.0), Some(4.0));
        assert_eq!(of(41.0), None);
    }

    /// By hand, 24 cycles each: the most frequent target is wrong with 1/4 and 1/8, the last one with
    /// 2 × 1/4 × 3/4 = 3/8 and 2 × 1/8 × 7/8 = 7/32.
    #[test]
    fn the_rule_follows_from_how_often_the_rarer_target_is_mispredicted() {
        let of = |quarter: f64, eighth: f64| {
            let jump = |bits, share: f64| (Jump(bits), 10.0 + 24.0 * share);
            let shares = [(NEVER, 0.0), (HALF, 0.5), (QUARTER, quarter), (EIGHTH, eighth)];
            let times = times(&shares.map(|(bits, share)| jump(bits, share)));
            assert_eq!(indirect_cost(&times), Some(24.0));
            targets(&times).unwrap().rule()
        };
        assert_eq!(of(1.0 / 4.0, 1.0 / 8.0), Some(Rule::MostFrequent));
        assert_eq!(of(3.0 / 8.0, 7.0 / 32.0), Some(Rule::Last));
        // One says this, the other that; or neither.
        assert_eq!(of(3.0 / 8.0, 1.0 / 8.0), None);
        assert_eq!(of(5.0 / 16.0, 11.0 / 64.0), None);
        assert_eq!(targets(&Times::default()), None);
    }
}
