//! Mispredicted indirect calls: while the core recovers from one its callee begins, so that part of what it costs is
//! sampled there. What the calls' own blocks have no room for goes to the functions that are called so.

use super::needs::LONGEST;
use estimate::Interval;
use std::collections::HashMap;

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
pub(super) struct Landing {
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

impl Landing {
    /// Cycles that mispredicted calls cost in a function that is called this often: its share of the calls, where these
    /// are the recorded ones and not also calls through a linkage table, or from code that was not analysed; at most
    /// the cost of each of its calls.
    pub fn landed(&self, called: f64) -> Interval {
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
        let landing = Landing { all, moved: 600.0, called: [called(25.0), called(75.0)].into() };
        assert_eq!(landing.landed(25.0), Interval::new(150.0, 0.0, 600.0));
        // Never more than all of them.
        assert_eq!(landing.landed(75.0), Interval::new(450.0, 0.0, 1200.0));
        assert_eq!(Landing::default().landed(25.0), Interval::default());
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
            let landing = Landing { all, moved: 600.0, called };
            assert_eq!(landing.landed(25.0), Interval::new(0.0, 0.0, 500.0));
            assert_eq!(landing.landed(other), Interval::new(0.0, 0.0, 1000.0));
        }
    }

    /// A predictor of which it is not known whether it predicts them: none or all of 100, at 20 cycles; or at no known cost.
    #[test]
    fn mispredictions_that_may_be_have_a_most_where_they_are_called() {
        let called = [(("a".to_owned(), 1), 50.0), (("a".to_owned(), 2), 50.0)];
        let of = |all| Landing { all, moved: 0.0, called: called.clone().into() }.landed(50.0);
        let cost = Interval::new(0.0, 0.0, 2000.0);
        let calls = Calls { executed: 100.0, cost, ..Calls::default() };
        assert_eq!(of(calls), Interval::new(0.0, 0.0, 2000.0));
        let without = Calls { executed: 100.0, number: 50.0, unknown: 4000.0, ..Calls::default() };
        assert_eq!(of(without), Interval::new(0.0, 0.0, 50.0 * LONGEST));
    }
}
