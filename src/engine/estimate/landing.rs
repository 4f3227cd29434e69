//! Mispredicted indirect calls: while the core recovers from one its callee begins, so that part of what it costs is
//! sampled there. What the calls' own blocks have no room for goes to the functions that are called so.

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
}

/// Where what mispredicted indirect calls cost is sampled.
#[derive(Debug, Default)]
pub(super) struct Landing {
    /// All of them.
    pub all: Calls,
    /// Cycles of these that the blocks of the calls have no room for.
    pub moved: f64,
    /// Indirect calls of each function, by file and first address.
    pub called: HashMap<(String, u64), f64>,
}

impl Landing {
    /// What mispredicted calls cost in a function that is called so often: its share of the calls; at most that of each of
    /// its calls.
    pub fn landed(&self, called: f64) -> Interval {
        let known: f64 = self.called.values().sum();
        let calls = self.all.executed.max(known);
        if self.all.number <= 0.0 || calls <= 0.0 {
            return Interval::default();
        }
        let each = self.all.cost.high / self.all.number;
        let value = self.moved * called / calls;
        Interval::new(value, 0.0, self.all.cost.high.min(each * called))
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
        let all = Calls { executed: 100.0, number: 50.0, cost };
        let called = |times| (("a.out".to_owned(), times as u64), times);
        let landing = Landing { all, moved: 600.0, called: [called(25.0), called(75.0)].into() };
        assert_eq!(landing.landed(25.0), Interval::new(150.0, 0.0, 600.0));
        // Never more than all of them.
        assert_eq!(landing.landed(75.0), Interval::new(450.0, 0.0, 1200.0));
        assert_eq!(Landing::default().landed(25.0), Interval::default());
    }
}
