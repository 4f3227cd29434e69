//! Bounds how often branches can be mispredicted before that is recorded, and divides the cost of mispredicted
//! indirect calls between the places where it can be sampled.
//!
//! While the core recovers from a mispredicted call its callee begins, so that part of the cost is sampled there: in each place
//! in proportion to its excess over what it takes when the target is known, of a callee at most what its calls can cost.

use super::further::Counted;
use super::pieces::{Function, Key};
use estimate::Interval;
use iced_x86::FlowControl;
use std::collections::BTreeMap;

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
        FlowControl::IndirectBranch if function.is_stub => 0.0,
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

/// Indirect calls that were recorded, and jumps to other functions.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub executed: f64,
    /// Mispredictions at most.
    pub number: f64,
    /// Cycles of these.
    pub cost: Interval,
}

impl Calls {
    /// Adds others.
    pub fn add(&mut self, others: Self) {
        self.executed += others.executed;
        self.number += others.number;
        self.cost = self.cost.plus_alike(others.cost);
    }

    /// The most cycles of one misprediction.
    pub fn each(&self) -> f64 {
        if self.number > 0.0 { self.cost.high / self.number } else { LONGEST }
    }
}

/// A place where part of the cost can be sampled.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Cycles beyond those that it takes when the target is known.
    excess: Interval,
    /// Whether it has such calls itself.
    calls: bool,
    /// Cycles at most that calls of it cost which were not recorded.
    unrecorded: f64,
}

/// Where what mispredicted indirect calls cost is sampled.
#[derive(Debug, Default)]
pub(super) struct CalleeCosts {
    cost: Interval,
    places: BTreeMap<Key, Place>,
    /// Excess of all places, and of code that was not analysed.
    excess: Interval,
}

/// Calls that are not direct, as a multiple of the recorded indirect ones, up to which there are no others.
const OTHERS: f64 = 1.1;

impl CalleeCosts {
    /// The cost of `all` calls, made in these pieces; `callees` with how often each is called where no direct call is known
    /// for it, infinite where its entries are not known. Which of them the calls go to is known where these are no more
    /// often called, as through a linkage table or from code that was not analysed; `unrecorded`: executions at most of such
    /// calls that were not recorded.
    pub fn new(
        all: &Calls,
        unrecorded: f64,
        callers: Vec<(Key, Interval)>,
        callees: Vec<(Key, Interval, f64)>,
    ) -> Self {
        let known: f64 = callees.iter().map(|(.., called)| called).sum();
        let are_known = known <= OTHERS * all.executed;
        let elsewhere = (all.executed - known).max(0.0) * all.each();
        let unrecorded = unrecorded.min((known - all.executed).max(0.0));
        let mut places: BTreeMap<Key, Place> = BTreeMap::new();
        for (key, excess, called) in callees {
            let (most, own) = (excess.high, excess.clamped(0.0, all.each() * called));
            let excess = if are_known { own } else { Interval::new(0.0, 0.0, own.high) };
            let unrecorded = (LONGEST * unrecorded.min(called)).min(most);
            places.insert(key, Place { excess, calls: false, unrecorded });
        }
        for (key, excess) in callers {
            let own = places.entry(key).or_default();
            *own = Place { excess, calls: true, ..*own };
        }
        let sum = places.values().map(|place| place.excess);
        let excess = sum.fold(Interval::new(0.0, 0.0, elsewhere), Interval::plus_alike);
        Self { cost: all.cost, places, excess }
    }

    /// Cycles that mispredicted calls cost in a piece, if they can be sampled there, and whether it has some itself: its part
    /// of all excess, more if the others have less and it has more.
    pub fn at(&self, key: &Key) -> Option<(Interval, bool)> {
        let Place { excess: own, calls, .. } = *self.places.get(key)?;
        let others = |of: fn(Interval) -> f64| (of(self.excess) - of(own)).max(0.0);
        let of = |cost: f64, own: f64, others: f64| match own > 0.0 {
            true => cost * own / (own + others),
            false => 0.0,
        };
        let high = of(self.cost.high, own.high, others(|all| all.low)).min(own.high);
        let low = of(self.cost.low, own.low, others(|all| all.high)).min(high);
        let value = of(self.cost.value, own.value, others(|all| all.value));
        Some((Interval::new(value.clamp(low, high), low, high), calls))
    }

    /// Cycles at most that calls cost in a piece which were not recorded.
    pub fn unrecorded(&self, key: &Key) -> f64 {
        self.places.get(key).map_or(0.0, |place| place.unrecorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(at: u64) -> Key {
        ("a.out".to_owned(), at)
    }

    /// 100 calls, of which 50 are mispredicted.
    fn calls(cost: Interval) -> Calls {
        Calls { executed: 100.0, number: 50.0, cost }
    }

    fn of(costs: &CalleeCosts, at: u64) -> Interval {
        costs.at(&key(at)).unwrap().0
    }

    /// By hand: 1,000 cycles (800 to 1,200), 24 each at most; an excess of 400 at the calls, of 200 and 400 in functions that are
    /// called 25 and 75 times.
    #[test]
    fn a_place_has_the_cost_in_proportion_to_its_excess() {
        let exact = Interval::exact;
        let callees = vec![(key(1), exact(200.0), 25.0), (key(2), exact(400.0), 75.0)];
        let all = calls(Interval::new(1000.0, 800.0, 1200.0));
        let costs = CalleeCosts::new(&all, 0.0, vec![(key(0), exact(600.0))], callees);
        assert_eq!(of(&costs, 0), Interval::new(500.0, 400.0, 600.0));
        assert_eq!(of(&costs, 1), Interval::new(1000.0 / 6.0, 800.0 / 6.0, 200.0));
        assert_eq!(costs.at(&key(3)), None);
        assert_eq!((costs.at(&key(0)).unwrap().1, costs.at(&key(1)).unwrap().1), (true, false));
    }

    /// By hand: 600 cycles; 300 at the calls, and in the function 100 to 500 by what else could take them there.
    #[test]
    fn an_excess_that_others_could_take_has_less_for_certain() {
        let callees = vec![(key(1), Interval::new(300.0, 100.0, 500.0), 100.0)];
        let costs = CalleeCosts::new(
            &calls(Interval::exact(600.0)),
            0.0,
            vec![(key(0), Interval::new(300.0, 300.0, 1000.0))],
            callees,
        );
        assert_eq!(
            of(&costs, 0),
            Interval::new(300.0, 600.0 * 300.0 / 800.0, 600.0 * 1000.0 / 1100.0)
        );
        assert_eq!(
            of(&costs, 1),
            Interval::new(300.0, 600.0 * 100.0 / 1100.0, 600.0 * 500.0 / 800.0)
        );
    }

    /// A function that is called 25 times beside one that is called 10,000 times, perhaps through a linkage table, or
    /// an unknown number of times: to which of them the calls go is not known. At most 20 cycles each.
    #[test]
    fn calls_that_may_be_of_others_have_no_share_but_a_most() {
        for other in [10_000.0, f64::INFINITY] {
            let exact = Interval::exact;
            let callees = vec![(key(1), exact(900.0), 25.0), (key(2), exact(2000.0), other)];
            let costs = CalleeCosts::new(&calls(exact(1000.0)), 0.0, Vec::new(), callees);
            assert_eq!(of(&costs, 1), Interval::new(0.0, 0.0, 500.0));
            assert_eq!(of(&costs, 2), Interval::new(0.0, 0.0, 1000.0));
        }
    }

    /// By hand: 60 of the calls go to code that was not analysed, where up to 1,200 of 2,000 cycles may be sampled.
    #[test]
    fn what_calls_of_other_code_cost_may_be_sampled_there() {
        let callees = vec![(key(1), Interval::exact(800.0), 40.0)];
        let all = Calls { executed: 100.0, number: 100.0, cost: Interval::exact(2000.0) };
        let costs = CalleeCosts::new(&all, 0.0, vec![(key(0), Interval::exact(400.0))], callees);
        assert_eq!(of(&costs, 1).low, 2000.0 * 800.0 / 2400.0);
        assert_eq!(of(&costs, 1).high, 800.0);
    }

    /// By hand: a function with an excess of 900 cycles is called 25 times, 10 of them perhaps by jumps that have no probe.
    #[test]
    fn calls_that_were_not_recorded_have_a_most_where_they_go() {
        let of = |unrecorded, called| {
            let callees = vec![(key(1), Interval::exact(900.0), called)];
            CalleeCosts::new(&Calls::default(), unrecorded, Vec::new(), callees).unrecorded(&key(1))
        };
        assert_eq!((of(10.0, 25.0), of(0.0, 25.0)), (10.0 * LONGEST, 0.0));
        assert_eq!((of(100.0, 5.0), of(100.0, f64::INFINITY)), (5.0 * LONGEST, 900.0));
    }
}
