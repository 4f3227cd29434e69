//! What parts consist of, on cases worked out by hand.

use crate::part::{ALL, Part};
use crate::{
    BoundBy, Divisions, Evidence, IDLE, Interval, Isolated, Loads, Mispredicted, Parts, Reason,
    divide, divide_all,
};

/// 100 cycles, 10 of them retiring, 30 in isolation: 20 are Core Bound, 70 are left.
pub(crate) fn evidence() -> Evidence {
    let cycles = Interval::exact(30.0);
    Evidence {
        cycles: Interval::exact(100.0),
        retiring: Ok(Interval::exact(10.0)),
        contention: None,
        mispredicted: Mispredicted::default(),
        isolated: Ok(Isolated { cycles, bound: BoundBy::Core, loads: 0.0, among: 0.0 }),
        other_values: false,
        divisions: Divisions::Absent,
        certain: IDLE,
        is_loop: true,
        latency: 0.0,
        loads: Ok(Loads::default()),
        fetch: 0.0,
        translation: 0.0,
    }
}

/// Loads of which so many cycles are L2's, L3's, memory's, and of stores.
fn loads(levels: [f64; 4]) -> Loads {
    let levels = levels.map(Interval::exact);
    let at_most = levels.into_iter().fold(Interval::default(), Interval::plus_alike);
    Loads { at_most, levels, ..Loads::default() }
}

fn near(parts: &Parts, part: Part, [value, low, high]: [f64; 3]) {
    let share = parts.get(part).expect("known apart");
    let found = [share.value - value, share.low - low, share.high - high];
    assert!(found.iter().all(|one| one.abs() < 1e-9), "{part:?}: {share:?} in {parts:?}");
}

/// By hand: 70 are of loads (a quarter less if they overlap), of whose 400 cycles 40 are L2's. These are 52 at most
/// (latencies are known within 30 %), and none where memory's, 468, took all; memory has what they leave of 52.5.
#[test]
fn memory_bound_consists_of_levels_by_latency() {
    let parts = divide(&Evidence { loads: Ok(loads([40.0, 0.0, 360.0, 0.0])), ..evidence() });
    near(&parts, Part::MemoryBound, [0.7, 0.525, 0.7]);
    near(&parts, Part::L2Bound, [0.07, 0.0, 0.52]);
    near(&parts, Part::DramBound, [0.63, 0.005, 0.7]);
    for none in [Part::L1Bound, Part::L3Bound, Part::StoreBound] {
        near(&parts, none, [0.0; 3]);
    }
    // All from memory: as certain as Memory Bound.
    let parts = divide(&Evidence { loads: Ok(loads([0.0, 0.0, 400.0, 0.0])), ..evidence() });
    near(&parts, Part::DramBound, [0.7, 0.525, 0.7]);
}

/// By hand: 100 cycles of the third cache or of memory, 300 of stores: 52 and 17 of 70; of the former nobody knows whose.
#[test]
fn levels_that_are_not_known_apart_are_left_out() {
    let either = Interval::new(0.0, 0.0, 100.0);
    let levels = [Interval::default(), either, either, Interval::exact(300.0)];
    let of = Loads { at_most: Interval::exact(400.0), levels, ..Loads::default() };
    let parts = divide(&Evidence { loads: Ok(of), ..evidence() });
    assert_eq!((parts.get(Part::L3Bound), parts.get(Part::DramBound)), (None, None));
    near(&parts, Part::L2Bound, [0.0; 3]);
    assert!((parts.of(Part::StoreBound).value - 0.525).abs() < 1e-9, "{parts:?}");
}

/// By hand: of 20 cycles divisions take all; or half of a chain, of which half is certain; or nobody knows.
#[test]
fn core_bound_consists_of_the_divider_and_other_units() {
    let of = |divisions| divide(&Evidence { divisions, ..evidence() });
    let all = of(Divisions::Take(1.0));
    near(&all, Part::Divider, [0.2; 3]);
    near(&all, Part::PortsUtilization, [0.0; 3]);
    let half = of(Divisions::Take(0.5));
    near(&half, Part::Divider, [0.1, 0.05, 0.1]);
    near(&half, Part::PortsUtilization, [0.1, 0.1, 0.15]);
    let least = of(Divisions::AtLeast(0.5));
    near(&least, Part::Divider, [0.1, 0.05, 0.2]);
    near(&least, Part::PortsUtilization, [0.1, 0.0, 0.15]);
    let unknown = of(Divisions::Unknown);
    assert_eq!((unknown.get(Part::Divider), unknown.get(Part::PortsUtilization)), (None, None));
    let none = of(Divisions::Absent);
    near(&none, Part::Divider, [0.0; 3]);
    assert_eq!(none.of(Part::PortsUtilization).interval(), none.core_bound.interval());
}

/// By hand: fetching takes the 70 that are left; translation could take 20 of them.
#[test]
fn fetch_latency_is_of_caches_as_far_as_translation_is_not() {
    let of = |translation| divide(&Evidence { fetch: 90.0, translation, ..evidence() });
    let without = of(0.0);
    near(&without, Part::ICacheMisses, [0.7, 0.525, 0.7]);
    near(&without, Part::ItlbMisses, [0.0; 3]);
    let with = of(20.0);
    assert!((with.of(Part::ICacheMisses).low - 0.325).abs() < 1e-9, "{with:?}");
    assert_eq!(with.get(Part::ItlbMisses), None);
}

#[test]
fn bad_speculation_is_mispredicted_branches() {
    let mispredicted = Mispredicted::known(Interval::new(40.0, 30.0, 50.0));
    let parts = divide(&Evidence { mispredicted, ..evidence() });
    near(&parts, Part::BranchMispredicts, [0.4, 0.3, 0.5]);
    let unknown =
        Mispredicted { unknown: Some((40.0, Reason::given("no cost"))), ..Mispredicted::default() };
    let parts = divide(&Evidence { mispredicted: unknown, ..evidence() });
    assert_eq!(parts.get(Part::BranchMispredicts), None, "as little as its parent");
}

/// By hand: a half of the time is DRAM Bound for 70 %; in the other one it may be anything up to its Memory Bound, 70 %.
#[test]
fn a_child_of_a_part_of_the_code_is_known_as_far_as_it_goes() {
    let known = divide(&Evidence { loads: Ok(loads([0.0, 0.0, 400.0, 0.0])), ..evidence() });
    let either = Interval::new(0.0, 0.0, 400.0);
    let levels = [Interval::default(), either, either, Interval::default()];
    let of = Loads { at_most: Interval::exact(400.0), levels, ..Loads::default() };
    let open = divide(&Evidence { loads: Ok(of), ..evidence() });
    let sum = Parts::sum([(1.0, &known), (1.0, &open)].into_iter());
    near(&sum, Part::DramBound, [0.35, 0.2625, 0.7]);
    assert_eq!(sum.get(Part::L3Bound), None, "known of none");
    near(&sum, Part::L2Bound, [0.0; 3]);
}

/// By hand: 70 are left of each piece. One lacks 6 cycles of mispredictions and has most of the time; what could take
/// the rest are the loads of the other, which were not measured.
#[test]
fn the_reason_is_what_could_take_most_of_the_rest() {
    let unknown =
        Mispredicted { unknown: Some((6.0, Reason::given("no cost"))), ..Mispredicted::default() };
    let one = Evidence { mispredicted: unknown, cycles: Interval::exact(101.0), ..evidence() };
    let other = Evidence { loads: Ok(Loads { unknown: 70.0, ..Loads::default() }), ..evidence() };
    let left = divide_all(&[one, other]).of(Part::Unexplained).reason.clone();
    assert_eq!(left, Some(Reason::SomeLoads));
    // Fetching and loads could each take all of it.
    let both = Evidence { fetch: 500.0, loads: Ok(loads([0.0, 0.0, 400.0, 0.0])), ..evidence() };
    let left = divide(&both).of(Part::Unexplained).reason.clone();
    assert_eq!(left, Some(Reason::FetchOrWait));
    // Also where some other loads were not measured.
    let few = Loads { unknown: 6.0, ..loads([0.0, 0.0, 400.0, 0.0]) };
    let left = divide(&Evidence { loads: Ok(few), ..both }).of(Part::Unexplained).reason.clone();
    assert_eq!(left, Some(Reason::FetchOrWait));
}

/// No child is above its parent, nor all together.
pub(crate) fn are_within(parts: &Parts) -> bool {
    const ROUNDED: f64 = 1e-9;
    ALL.into_iter().all(|parent| {
        let whole = parts.of(parent).interval();
        let all: Vec<Interval> =
            parent.children().filter_map(|child| Some(parts.get(child)?.interval())).collect();
        let each = |one: &Interval| {
            0.0 <= one.low
                && one.low <= one.value
                && one.value <= one.high
                && one.high <= whole.high + ROUNDED
        };
        let sum = |of: fn(&Interval) -> f64| all.iter().map(of).sum::<f64>();
        all.iter().all(each)
            && sum(|one| one.value) <= whole.value + ROUNDED
            && sum(|one| one.low) <= whole.low + ROUNDED
    })
}
