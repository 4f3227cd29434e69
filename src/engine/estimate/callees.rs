//! Bounds how often branches can be mispredicted before that is recorded, and moves the cost of mispredicted
//! indirect calls to where it was sampled.
//!
//! While the core recovers from a mispredicted call its callee begins, so that part of the cost is sampled there.
//! Cost that the calls' own blocks have no room for goes to the functions that are called so.

use super::further::Counted;
use super::pieces::Function;
use estimate::Interval;
use iced_x86::FlowControl;
use std::collections::HashMap;

/// The most cycles of a misprediction, where they are not known. Published are 11 to 18 (AMD, Software Optimization Guide
/// for family 19h) and about 15 to 20 (A. Fog, The microarchitecture of Intel, AMD and VIA CPUs); a branch waits for what
/// it depends on before that, as the self-test's does for a forwarded load and a multiplication: 25 to 35 in all.
pub(super) const LONGEST: f64 = 40.0;
/// The least cycles of a misprediction, by the guide of AMD.
pub(super) const SHORTEST: f64 = 11.0;
/// Mispredictions of a branch at most, as a multiple of its rarer way: 1.6 at 1/8 on Redwood Cove, as executions after
/// a rare one are mispredicted, too.
const AFTER_RARE: f64 = 2.0;

/// The most that mispredictions can cost, in cycles: those of a conditional branch are few where it goes the rarer way
/// in few of its executions; an indirect one is mispredicted each time.
pub(super) fn mispredictions(
    functions: &[Function],
    counted: &Counted,
    penalty: Option<f64>,
) -> f64 {
    let of_function = |function: &Function| -> f64 {
        (0..function.flow.blocks.len()).map(|block| most(counted, function, block)).sum()
    };
    functions.iter().map(of_function).sum::<f64>() * penalty.unwrap_or(LONGEST)
}

/// The most mispredictions of a block's branch.
pub(super) fn most(counted: &Counted, function: &Function, block: usize) -> f64 {
    let Some((_, last)) = function.instructions(block).last() else { return 0.0 };
    match last.decoded.flow_control() {
        FlowControl::IndirectBranch | FlowControl::IndirectCall => function.executed(block),
        FlowControl::ConditionalBranch => {
            rarer(counted, function, block).unwrap_or_else(|| function.executed(block))
        }
        _ => 0.0,
    }
}

/// Executions of the block's branch that can be mispredicted, by how often it goes the rarer way.
fn rarer(counted: &Counted, function: &Function, block: usize) -> Option<f64> {
    let row = counted.branches(&function.module, function.range(block)).last()?;
    let (taken, not) = (row.taken?, row.not_taken?);
    Some((AFTER_RARE * taken.min(not) as f64).min((taken + not) as f64))
}

/// The indirect calls of a piece that were recorded.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub executed: f64,
    /// Mispredictions.
    pub number: f64,
    /// Cycles of these.
    pub cost: Interval,
    /// Cycles at most of those that have no cost.
    pub unknown: f64,
}

/// Where what mispredicted indirect calls cost is sampled.
#[derive(Debug, Default)]
pub(super) struct CalleeCosts {
    /// All of them.
    pub all: Calls,
    /// Cycles of these that the blocks of the calls have no room for.
    pub moved: f64,
    /// Calls of each function that no direct one is known for, by file and first address; infinite where it is not known how
    /// often it was entered.
    pub called: HashMap<(String, u64), f64>,
}

/// Calls that are not direct, as a multiple of the recorded indirect ones, up to which there are no others.
const OTHERS: f64 = 1.1;

impl CalleeCosts {
    /// Cycles that mispredicted calls cost in a function that is called this often: its share of the calls, where these
    /// are the recorded ones and not also calls through a linkage table, or from code that was not analysed; at most
    /// the cost of each of its calls.
    pub fn cost_of(&self, called: f64) -> Interval {
        let known: f64 = self.called.values().sum();
        let most = self.all.cost.high + self.all.unknown;
        if called <= 0.0 || most <= 0.0 {
            return Interval::default();
        }
        let is_known = known <= OTHERS * self.all.executed;
        let calls = self.all.executed.max(known);
        let value = if is_known { self.moved * called / calls } else { 0.0 };
        let each = match self.all.number > 0.0 && self.all.unknown <= 0.0 {
            true => self.all.cost.high / self.all.number,
            false => LONGEST,
        };
        Interval::new(value, 0.0, most.min(each * called).max(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 100 calls, of which 50 are mispredicted and cost 1,000 cycles (800 to 1,200); 600 of these have no room
    /// where the calls are. A function that is called 25 times has a quarter of that, 150; at most 24 for each call, 600.
    #[test]
    fn a_callee_has_its_share_of_what_has_no_room_at_the_calls() {
        let cost = Interval::new(1000.0, 800.0, 1200.0);
        let all = Calls { executed: 100.0, number: 50.0, cost, unknown: 0.0 };
        let called = |times| (("a.out".to_owned(), times as u64), times);
        let costs = CalleeCosts { all, moved: 600.0, called: [called(25.0), called(75.0)].into() };
        assert_eq!(costs.cost_of(25.0), Interval::new(150.0, 0.0, 600.0));
        // Never more than all of them.
        assert_eq!(costs.cost_of(75.0), Interval::new(450.0, 0.0, 1200.0));
        assert_eq!(CalleeCosts::default().cost_of(25.0), Interval::default());
    }
    /// A function that is called 25 times beside one that is called 10,000 times, perhaps through a linkage table, or
    /// an unknown number of times: to which of them the calls go is not known.
    #[test]
    fn calls_that_may_be_of_others_have_no_share_but_a_most() {
        for other in [10_000.0, f64::INFINITY] {
            let all = Calls {
                executed: 100.0,
                number: 50.0,
                cost: Interval::exact(1000.0),
                unknown: 0.0,
            };
            let called = [(("a".to_owned(), 1), 25.0), (("a".to_owned(), 2), other)].into();
            let costs = CalleeCosts { all, moved: 600.0, called };
            assert_eq!(costs.cost_of(25.0), Interval::new(0.0, 0.0, 500.0));
            assert_eq!(costs.cost_of(other), Interval::new(0.0, 0.0, 1000.0));
        }
    }

    /// A predictor of which it is not known whether it predicts them: none or all of 100, at 20 cycles; or at no known cost.
    #[test]
    fn mispredictions_that_may_be_have_a_most_where_they_are_called() {
        let called = [(("a".to_owned(), 1), 50.0), (("a".to_owned(), 2), 50.0)];
        let of = |all| CalleeCosts { all, moved: 0.0, called: called.clone().into() }.cost_of(50.0);
        let cost = Interval::new(0.0, 0.0, 2000.0);
        let calls = Calls { executed: 100.0, cost, ..Calls::default() };
        assert_eq!(of(calls), Interval::new(0.0, 0.0, 2000.0));
        let without = Calls { executed: 100.0, number: 50.0, unknown: 4000.0, ..Calls::default() };
        assert_eq!(of(without), Interval::new(0.0, 0.0, 50.0 * LONGEST));
    }
}
