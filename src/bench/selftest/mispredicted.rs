//! What mispredictions cost, and which of several targets and which returns are predicted.

use super::questions::Question::{self, Branch, Call, Jump, Nested, Second};
use super::questions::{ALTERNATE, EIGHTH, FIVES, HALF, NEVER, ONE_PLACE, OTHER, QUARTER};
use super::times::Times;
use tma::self_test::{Below, Returns, Targets};

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

/// Returns of the nested calls that a stack of 32 return addresses has no room for.
const BELOW: f64 = 32.0;

/// How often returns below the stack of return addresses are mispredicted, by what they take beyond those of calls from
/// one place.
pub fn returns(times: &Times) -> Option<Returns> {
    let all = BELOW * ready_cost(times)?;
    let share = |places| Some((times.get(Nested(places))? - times.get(Nested(ONE_PLACE))?) / all);
    Some(Returns { alternate: share(ALTERNATE)?, fives: share(FIVES)? })
}

/// What each of these costs, where the processor shows which they are. By hand, of the 31 returns below a stack of 32 to a
/// nested call: the oldest address is that of the other place for 16 of alternate calls, the address 32 levels further in is
/// so for 12 of those in fives.
pub fn return_cost(times: &Times) -> Option<f64> {
    let (places, mispredicted) = match returns(times)?.rule()? {
        Below::Oldest => (ALTERNATE, 16.0),
        Below::Around => (FIVES, 12.0),
        Below::History => return None,
    };
    Some((times.get(Nested(places))? - times.get(Nested(ONE_PLACE))?) / mispredicted)
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
    /// By hand, 22 cycles each and 32 returns below the stack: half of them are 352 cycles, 2/5 are 282.
    #[test]
    fn the_rule_of_returns_follows_from_which_calls_cost_more() {
        let all = |alternate: f64, fives: f64| {
            let seconds = [(Second(NEVER), 10.0), (Second(OTHER), 21.0)];
            let nested = [
                (Nested(ONE_PLACE), 300.0),
                (Nested(ALTERNATE), 300.0 + alternate),
                (Nested(FIVES), 300.0 + fives),
            ];
            times(&[&seconds[..], &nested[..]].concat())
        };
        let of = |alternate, fives| returns(&all(alternate, fives)).unwrap().rule();
        assert_eq!(of(352.0, 282.0), Some(Below::Oldest));
        assert_eq!(of(0.0, 282.0), Some(Below::Around));
        assert_eq!(of(10.0, -5.0), Some(Below::History));
        // Between both, and what no rule does.
        assert_eq!((of(105.0, 282.0), of(352.0, 0.0)), (None, None));
        assert_eq!(returns(&Times::default()), None);
        // 352 ÷ 16, 204 ÷ 12.
        assert_eq!(return_cost(&all(352.0, 282.0)), Some(22.0));
        assert_eq!(return_cost(&all(0.0, 204.0)), Some(17.0));
        assert_eq!(return_cost(&all(0.0, 0.0)), None);
    }
}
