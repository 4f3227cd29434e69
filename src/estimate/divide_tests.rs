//! Tests of the division on cases worked out by hand.

use super::*;
use crate::evidence::Isolated;
use crate::{Contending, Contention, Divisions, Dominant, Loads, Mispredicted, bottleneck};

/// 100 cycles sampled within 4 %, 10 of them retiring, 30 in isolation.
fn evidence() -> Evidence {
    let cycles = Interval::relative(30.0, 0.05);
    Evidence {
        cycles: Interval::relative(100.0, 0.04),
        retiring: Ok(Interval::exact(10.0)),
        mispredicted: Mispredicted::default(),
        contention: None,
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

fn value(parts: &Parts, part: Part) -> f64 {
    (parts.of(part).value * 1e6).round() / 1e6
}

fn sums_to_one(parts: &Parts) {
    let sum: f64 = parts.iter().map(|(_, share)| share.value).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{parts:?}");
    for (_, share) in parts.iter() {
        let Interval { value, low, high } = share.interval();
        assert!(0.0 <= low && low <= value && value <= high && high <= 1.0, "{parts:?}");
    }
}

#[test]
fn without_evidence_the_rest_is_unexplained() {
    let parts = divide(&evidence());
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::Retiring), 0.1);
    assert_eq!(value(&parts, Part::CoreBound), 0.2);
    assert_eq!(value(&parts, Part::Unexplained), 0.7);
    assert_eq!(bottleneck(&parts), None);
}

/// By hand: 20 cycles beyond retiring. All of them where loads wait for stores; of a chain of which loads take 60 %,
/// 12, of which other instructions may execute in 6.
#[test]
fn waiting_for_the_first_cache_is_memory_bound() {
    let of = |loads| {
        let cycles = Interval::exact(30.0);
        let isolated = Ok(Isolated { cycles, bound: BoundBy::Core, loads, among: 0.0 });
        let parts = divide(&Evidence { cycles: Interval::exact(100.0), isolated, ..evidence() });
        sums_to_one(&parts);
        assert_eq!(parts.get(Part::L1Bound), Some(parts.of(Part::MemoryBound)));
        parts
    };
    assert_eq!(of(1.0).of(Part::L1Bound).interval(), Interval::exact(0.2));
    assert_eq!(value(&of(1.0), Part::CoreBound), 0.0);
    let chain = of(0.6);
    let near = |share: &Share, [value, low, high]: [f64; 3]| {
        let found = [share.value - value, share.low - low, share.high - high];
        assert!(found.iter().all(|one| one.abs() < 1e-9), "{share:?}");
    };
    near(chain.of(Part::L1Bound), [0.12, 0.06, 0.12]);
    near(chain.of(Part::CoreBound), [0.08, 0.08, 0.14]);
    // Where counters have all of it in Memory Bound.
    let isolated = Ok(Isolated {
        cycles: Interval::exact(30.0),
        bound: BoundBy::Core,
        loads: 0.6,
        among: 0.0,
    });
    let cycles = Interval::exact(100.0);
    let parts = divide(&Evidence { cycles, isolated, certain: 1.0, ..evidence() });
    near(parts.of(Part::L1Bound), [0.12; 3]);
}

/// By hand: 10 of 100 cycles retire; the other 90 may be anything that was not measured in isolation.
#[test]
fn what_was_not_measured_in_isolation_may_wait_for_the_first_cache() {
    let isolated = Err(Reason::given("cold"));
    let parts = divide(&Evidence { isolated, latency: 1000.0, ..evidence() });
    for part in [Part::CoreBound, Part::MemoryBound] {
        let share = parts.of(part);
        assert!(share.high > 0.85 && share.low == 0.0, "{part:?}: {share:?}");
    }
    assert_eq!(parts.get(Part::L1Bound), None, "it may be all of it");
}

#[test]
fn loads_that_can_account_for_the_rest_get_it() {
    let at_most = Interval::exact(400.0);
    let loads = Ok(Loads { at_most, carried: Interval::default(), ..Loads::default() });
    let parts = divide(&Evidence { loads, ..evidence() });
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::MemoryBound), 0.7);
    // A quarter of 0.7 below.
    assert!(parts.of(Part::MemoryBound).low < 0.53, "{parts:?}");
    assert_eq!(bottleneck(&parts), Some(Dominant::Part(Part::MemoryBound)));
}

#[test]
fn loads_that_cannot_leave_something_unexplained() {
    let at_most = Interval::exact(20.0);
    let loads = Ok(Loads { at_most, carried: at_most, ..Loads::default() });
    let parts = divide(&Evidence { loads, ..evidence() });
    sums_to_one(&parts);
    // 20 × 1.3 of 100.
    assert_eq!(value(&parts, Part::MemoryBound), 0.26);
    assert_eq!(value(&parts, Part::Unexplained), 0.44);
}

#[test]
fn what_loads_and_code_both_could_take_is_not_distributed() {
    let loads = Ok(Loads {
        at_most: Interval::exact(400.0),
        carried: Interval::default(),
        ..Loads::default()
    });
    let parts = divide(&Evidence { loads, fetch: 500.0, ..evidence() });
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::Unexplained), 0.7);
    assert_eq!(parts.of(Part::Unexplained).reason, Some(Reason::FetchOrWait));
    assert_eq!(bottleneck(&parts), None);
    // Fetching can take 50 of 70: at least 20 are of loads.
    let loads = Ok(Loads {
        at_most: Interval::exact(400.0),
        carried: Interval::default(),
        ..Loads::default()
    });
    let parts = divide(&Evidence { loads, fetch: 50.0, ..evidence() });
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::MemoryBound), 0.2);
    assert_eq!(value(&parts, Part::FetchLatency), 0.0);
    assert_eq!(value(&parts, Part::Unexplained), 0.5);
}

#[test]
fn mispredictions_come_off_the_rest() {
    let mispredicted = Mispredicted::known(Interval::relative(60.0, 0.15));
    let parts = divide(&Evidence { mispredicted, ..evidence() });
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::BadSpeculation), 0.6);
    assert_eq!(value(&parts, Part::Unexplained), 0.1);
    assert_eq!(bottleneck(&parts), Some(Dominant::Part(Part::BadSpeculation)));
}

/// 10 + 20 + 90 are 20 too many. Of 90 ± 13.5 and 20 ± 1.5 (and ± 4 % of the time) the first gives way.
#[test]
fn what_is_too_much_gives_way_by_its_error() {
    let mispredicted = Mispredicted::known(Interval::relative(90.0, 0.15));
    let parts = divide(&Evidence { mispredicted, ..evidence() });
    sums_to_one(&parts);
    assert!(value(&parts, Part::Retiring) > 0.099, "{parts:?}");
    assert!((0.70..0.71).contains(&value(&parts, Part::BadSpeculation)), "{parts:?}");
    assert_eq!(value(&parts, Part::Unexplained), 0.0);
}

#[test]
fn the_bound_says_where_isolated_cycles_belong() {
    let of = |bound| {
        let cycles = Interval::exact(30.0);
        let parts = divide(&Evidence {
            isolated: Ok(Isolated { cycles, bound, loads: 0.0, among: 0.0 }),
            ..evidence()
        });
        sums_to_one(&parts);
        parts
    };
    assert_eq!(value(&of(BoundBy::FrontEnd), Part::FetchBandwidth), 0.2);
    assert_eq!(value(&of(BoundBy::IssueWidth), Part::Retiring), 0.3);
    assert_eq!(value(&of(BoundBy::Unknown), Part::Unexplained), 0.9);
}

/// By hand: 10 retire, 90 are left. Without overlap the loads take all of it, but the code may take 8 × 10 − 10 = 70
/// of that in isolation; where it is a path of 2 cycles for 1 that retires, no more than 9 (and 5 more, the least rest).
#[test]
fn without_isolation_only_carried_latency_is_memory() {
    let loads = |carried: f64, retired: f64| {
        let carried = Interval::exact(carried);
        let found = Loads { at_most: Interval::exact(500.0), carried, ..Loads::default() };
        let isolated = Err(Reason::given("it calls"));
        let retiring = Ok(Interval::exact(retired));
        let latency = 2.0 * retired;
        divide(&Evidence { loads: Ok(found), isolated, retiring, latency, ..evidence() })
    };
    let none = loads(0.0, 10.0);
    sums_to_one(&none);
    let memory = none.of(Part::MemoryBound).interval();
    assert!(memory.value == 0.0 && memory.high >= 0.9, "the others may be memory's: {memory:?}");
    let why = none.of(Part::Unexplained).reason.clone().unwrap();
    assert_eq!(why.to_string(), "not measured in isolation: it calls");
    let some = loads(200.0, 10.0);
    assert_eq!(value(&some, Part::MemoryBound), 0.9);
    assert!(some.of(Part::MemoryBound).low < 0.2, "{some:?}");
    assert!(some.of(Part::CoreBound).high >= 0.7, "{some:?}");
    assert_eq!(bottleneck(&some), None);
    let short = loads(200.0, 1.0);
    let low = short.of(Part::MemoryBound).low;
    assert!((low - (0.99 - 0.09 - 0.05)).abs() < 1e-9, "{low}: {short:?}");
    assert_eq!(bottleneck(&short), Some(Dominant::Part(Part::MemoryBound)));
}

#[test]
fn what_takes_longer_in_isolation_was_other_work() {
    let cycles = Interval::exact(500.0);
    let isolated = Ok(Isolated { cycles, bound: BoundBy::Core, loads: 0.0, among: 0.0 });
    let parts = divide(&Evidence { isolated, ..evidence() });
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::Unexplained), 0.9);
    let why = parts.of(Part::Unexplained).reason.clone().unwrap();
    assert!(
        why.to_string().ends_with("it takes 4.8 times as long there as in the program"),
        "{why}"
    );
}

/// By hand: of 100 cycles 10 retire and 20 more are measured; the longest paths have 80 − 30 more.
#[test]
fn dependencies_between_blocks_account_for_the_rest_as_far_as_they_go() {
    let parts = divide(&Evidence { is_loop: false, latency: 80.0, ..evidence() });
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::CoreBound), 0.7);
    assert_eq!(value(&parts, Part::Unexplained), 0.2);
    let core = parts.of(Part::CoreBound);
    // 50 by the latencies, beside the 20 in isolation.
    assert_eq!(core.source, crate::Source::IsolatedModelled);
    assert!(core.low < 0.6 && core.high >= 0.7, "{core:?}");
    // In a loop they are measured.
    let parts = divide(&Evidence { latency: 80.0, ..evidence() });
    assert_eq!(value(&parts, Part::CoreBound), 0.2);
}

/// By hand: 70 are left; loads can wait 60 cycles, other instructions 120 − 30 = 90: 28 and 42. None of both is
/// certain: 70 − 90 and 70 − 60 × 1.3 are below 0.
#[test]
fn what_loads_and_dependencies_wait_divides_by_their_latencies() {
    let loads = Ok(Loads {
        at_most: Interval::exact(60.0),
        carried: Interval::default(),
        ..Loads::default()
    });
    let parts = divide(&Evidence { is_loop: false, latency: 120.0, loads, ..evidence() });
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::MemoryBound), 0.28);
    assert_eq!(value(&parts, Part::CoreBound), 0.62);
    assert_eq!(parts.of(Part::MemoryBound).low, 0.0);
    assert_eq!(bottleneck(&parts), Some(Dominant::Backend), "which of them is not known");
}

/// By hand: 20 of the first block's 100 cycles are sampled in the second. Both retire 10 and take 90 in isolation: of
/// 200 cycles 20 retire, 160 are beyond, 20 are left.
#[test]
fn blocks_together_do_not_mind_which_of_them_has_the_samples() {
    let block = |cycles: f64| Evidence {
        cycles: Interval::relative(cycles, 0.04),
        is_loop: false,
        isolated: Ok(Isolated {
            cycles: Interval::relative(90.0, 0.05),
            bound: BoundBy::Core,
            loads: 0.0,
            among: 0.0,
        }),
        ..evidence()
    };
    let parts = divide_all(&[block(80.0), block(120.0)]);
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::Retiring), 0.1);
    assert_eq!(value(&parts, Part::CoreBound), 0.8);
    assert_eq!(value(&parts, Part::Unexplained), 0.1);
    // An uncounted piece is unknown.
    let unknown = Evidence { retiring: Err(Reason::given("no probe")), ..block(200.0) };
    let parts = divide_all(&[block(80.0), block(120.0), unknown]);
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::Unexplained), 0.55);
    assert_eq!(parts.of(Part::Unexplained).reason, Some(Reason::given("no probe")));
}

/// By hand: fetching can take 40 cycles of the 70 that are left, or 60 with translation, which leaves 10 to loads.
#[test]
fn translation_only_widens_what_fetching_can_take() {
    let of = |loads: f64| {
        let loads = Loads { at_most: Interval::exact(loads), ..Loads::default() };
        divide(&Evidence { fetch: 40.0, translation: 20.0, loads: Ok(loads), ..evidence() })
    };
    let fetch = of(0.0).of(Part::FetchLatency).interval();
    assert!((fetch.value - 0.4).abs() < 1e-9 && fetch.high >= 0.6, "{fetch:?}");
    assert_eq!(value(&of(400.0), Part::MemoryBound), 0.1);
}

/// By hand: fetching can take 90 cycles of the 70 that are left: a quarter less, 52, and the 4 that the time may be less.
#[test]
fn fetching_alone_is_known_as_well_as_the_model_is() {
    let parts = divide(&Evidence { fetch: 90.0, ..evidence() });
    sums_to_one(&parts);
    let fetch = parts.of(Part::FetchLatency).interval();
    assert!((fetch.value - 0.7).abs() < 1e-9 && (0.50..0.53).contains(&fetch.low), "{fetch:?}");
    assert_eq!(bottleneck(&parts), Some(Dominant::Part(Part::FetchLatency)));
}

/// By hand: 70 % are left; the divisions could take them, but with made-up values nobody knows.
#[test]
fn divisions_with_other_values_could_take_the_rest() {
    let parts = divide(&Evidence { other_values: true, ..evidence() });
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::CoreBound), 0.2);
    assert!(parts.of(Part::CoreBound).high >= 0.9, "{parts:?}");
    let left = parts.of(Part::Unexplained);
    assert_eq!(value(&parts, Part::Unexplained), 0.7);
    assert_eq!(left.reason, Some(Reason::DivisionValues));
}

/// By hand: 70 % are left; loads of which nothing was measured could take 30, or all of them.
#[test]
fn loads_that_were_not_measured_could_take_the_rest() {
    for (unknown, high, least) in [(30.0, 0.3, 0.4), (f64::INFINITY, 0.7, 0.0)] {
        let loads = Loads { unknown, ..Loads::default() };
        let parts = divide(&Evidence { loads: Ok(loads), ..evidence() });
        sums_to_one(&parts);
        let memory = parts.of(Part::MemoryBound).interval();
        assert!(memory.value == 0.0 && memory.high >= high, "{parts:?}");
        let left = parts.of(Part::Unexplained);
        assert!(left.low <= least + 1e-9, "{left:?}");
        assert_eq!(left.reason, Some(Reason::SomeLoads));
        assert_eq!(bottleneck(&parts), None);
    }
}

/// By hand: of 200 cycles, 40 are known; the other 80 of one piece could be waits of 20, and of the other divisions.
#[test]
fn what_several_pieces_could_take_adds_up() {
    let waits = Evidence { is_loop: false, latency: 40.0, ..evidence() };
    let divides = Evidence { other_values: true, ..evidence() };
    let apart = |one: &Evidence| divide(one).of(Part::CoreBound).high;
    let (one, other) = (apart(&waits), apart(&divides));
    let parts = divide_all(&[waits, divides]);
    sums_to_one(&parts);
    let core = parts.of(Part::CoreBound).high;
    assert!(core >= (one + other) / 2.0 - 0.05, "{core} of {one} and {other}: {parts:?}");
}

/// By hand: of 100 cycles 30 in isolation and 60 that a run on one CPU lacks; 10 are left.
#[test]
fn what_contention_costs_is_in_memory_bound() {
    let cycles = Interval::relative(60.0, 0.1);
    let contention = Some(Contention { cycles, by: Contending::OtherBytes });
    let parts = divide(&Evidence { contention, ..evidence() });
    sums_to_one(&parts);
    assert_eq!(value(&parts, Part::MemoryBound), 0.6);
    let [own, memory] = [Part::FalseSharing, Part::MemoryBound].map(|part| parts.of(part).clone());
    assert_eq!(own.value, memory.value);
    // Its ends are its own, 6 of 60; those of the sum have other causes, too.
    assert!(own.low >= memory.low && own.high <= memory.high && own.high >= 0.66, "{parts:?}");
    assert_eq!(value(&parts, Part::Unexplained), 0.1);
    assert_eq!((parts.mostly_contended(), parts.is_mostly_l1()), (Some(Part::FalseSharing), false));
    assert_eq!(bottleneck(&parts), Some(Dominant::Part(Part::MemoryBound)));
    // More than there is gives way, and both kinds have their share.
    let more = Contention { cycles: Interval::relative(90.0, 0.1), by: Contending::Locked };
    let other = Evidence { contention: Some(more), ..evidence() };
    let parts = divide_all(&[Evidence { contention, ..evidence() }, other]);
    sums_to_one(&parts);
    let [shared, locked] = [Part::FalseSharing, Part::LockLatency].map(|part| value(&parts, part));
    assert!((locked / shared - 1.5).abs() < 1e-3 && locked + shared < 0.75, "{parts:?}");
}

/// A block of 100 cycles outside loops, of which 10 retire, and 50 ± 30 % in isolation; its loads can take all that is left.
fn among_others(retired: Interval) -> Evidence {
    let cycles = Interval::exact(50.0);
    let at_most = Interval::exact(400.0);
    Evidence {
        cycles: Interval::exact(100.0),
        isolated: Ok(Isolated { cycles, bound: BoundBy::Core, loads: 0.0, among: 0.3 }),
        retiring: Ok(retired),
        is_loop: false,
        loads: Ok(Loads { at_most, ..Loads::default() }),
        ..evidence()
    }
}

/// By hand: 40 ± 15 are Core Bound, what is left waits for loads: together 90, less a quarter of 50 at most, as that
/// may have another cause. What retires, 10 ± 4, is none of it.
#[test]
fn backend_bound_minds_not_how_long_code_takes_in_isolation() {
    let parts = divide(&among_others(Interval::exact(10.0)));
    assert!((parts.of(Part::CoreBound).interval().below() - 0.15).abs() < 1e-9, "{parts:?}");
    let both = parts.backend();
    assert!((both.value - 0.9).abs() < 1e-9 && (both.low - 0.775).abs() < 1e-9, "{both:?}");
    let parts = divide(&among_others(Interval::relative(10.0, 0.4)));
    assert!((parts.backend().low - (0.9 - 0.04_f64.hypot(0.125))).abs() < 1e-9, "{parts:?}");
    // Mispredictions that may take 30 are of neither.
    let mispredicted =
        Mispredicted { unknown: Some((30.0, Reason::given("no cost"))), ..Mispredicted::default() };
    let open = divide(&Evidence { mispredicted, ..among_others(Interval::exact(10.0)) });
    assert!(open.backend().low < 0.6, "{open:?}");
}

/// By hand: half of 30 % is alike, the rest, 26 %, independent: of 100 such blocks √(15² + 2.6²) % of 50 are left.
#[test]
fn what_code_takes_among_other_code_is_alike_in_part() {
    let one = among_others(Interval::exact(10.0));
    let below = |of: &Parts| of.of(Part::CoreBound).interval().below();
    assert!((below(&divide_all(&vec![one.clone(); 100])) - 0.0761).abs() < 1e-3);
    assert!((below(&divide_alike(&[one])) - 0.075).abs() < 1e-9);
}
