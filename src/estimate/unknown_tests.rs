//! Tests with unknown evidence: it widens what it could move, and narrows nothing.

use crate::part::{ALL, WITHIN};
use crate::rest::LEAST;
use crate::within::tests::are_within;
use crate::{
    BoundBy, Divisions, Dominant, Evidence, IDLE, Interval, Isolated, Loads, Mispredicted, Part,
    Parts, Reason, bottleneck, divide, divide_all,
};
use proptest::prelude::*;

/// 100 cycles sampled within 4 %, 10 of them retiring, in isolation 20 by dependencies.
fn evidence() -> Evidence {
    Evidence {
        cycles: Interval::relative(100.0, 0.04),
        retiring: Ok(Interval::exact(10.0)),
        mispredicted: Mispredicted::default(),
        contention: None,
        isolated: Ok(Isolated {
            cycles: Interval::exact(20.0),
            bound: BoundBy::Core,
            loads: 0.0,
            among: 0.0,
        }),
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

fn unknown(most: f64) -> Mispredicted {
    Mispredicted { unknown: Some((most, Reason::given("no cost"))), ..Mispredicted::default() }
}

fn loads(at_most: f64) -> std::result::Result<Loads, Reason> {
    let at_most = Interval::exact(at_most);
    Ok(Loads { at_most, carried: at_most, ..Loads::default() })
}

fn share(parts: &Parts, part: Part) -> Interval {
    parts.of(part).interval()
}

/// By hand: a walk over a list, its branch the rarer way in 0.01 % of 1 execution in 100 cycles, of 40 cycles at most:
/// 80 % wait for its loads, as with the cost; a quarter may overlap, and 5 % is the least rest.
#[test]
fn a_rest_that_mispredictions_cannot_take_is_attributed() {
    let walk = Evidence { loads: loads(400.0), ..evidence() };
    let with = divide(&walk);
    let without = divide(&Evidence { mispredicted: unknown(0.004), ..walk });
    for parts in [&with, &without] {
        assert_eq!(bottleneck(parts), Some(Dominant::Part(Part::MemoryBound)), "{parts:?}");
        assert!((share(parts, Part::MemoryBound).value - 0.8).abs() < 1e-3, "{parts:?}");
    }
    let memory = share(&without, Part::MemoryBound);
    assert!(memory.low > 0.6, "{memory:?}");
}

/// By hand: a random branch: 80 of 100 cycles are left, which 100 at most can be of. Nothing else could take them, but
/// what does is not certain.
#[test]
fn mispredictions_without_a_cost_take_nothing_up_to_all_that_is_left() {
    let parts = divide(&Evidence { mispredicted: unknown(100.0), ..evidence() });
    let wrong = parts.of(Part::BadSpeculation);
    assert_eq!((wrong.value, wrong.low), (0.0, 0.0));
    assert!(wrong.high >= 0.8, "{wrong:?}");
    assert_eq!(
        (wrong.source, &wrong.reason),
        (crate::Source::Bounded, &Some(Reason::given("no cost")))
    );
    let left = parts.of(Part::Unexplained);
    assert!((left.value - 0.8).abs() < 1e-9 && left.low == 0.0, "{left:?}");
    let why = Reason::Mispredictions(Reason::given("no cost").into());
    assert_eq!(left.reason, Some(why));
    assert_eq!(bottleneck(&parts), None);
}

/// By hand: 80 are left, of which mispredictions can take 30: 50 wait for loads for certain, up to 80 may.
#[test]
fn what_mispredictions_could_take_is_not_memory_for_certain() {
    let parts =
        divide(&Evidence { mispredicted: unknown(30.0), loads: loads(400.0), ..evidence() });
    let memory = share(&parts, Part::MemoryBound);
    assert!((memory.value - 0.5).abs() < 1e-9 && memory.high >= 0.8, "{memory:?}");
    let high = share(&parts, Part::BadSpeculation).high;
    assert!((high - 0.3).abs() < 1e-9, "{high}");
    assert!((share(&parts, Part::Unexplained).value - 0.3).abs() < 1e-9, "{parts:?}");
}

/// By hand: of a piece without counts nothing is known; no part is 0 for certain.
#[test]
fn without_counts_each_part_may_be_all() {
    let parts = divide(&Evidence { retiring: Err(Reason::given("no probe")), ..evidence() });
    for part in ALL {
        let of = parts.of(part);
        assert_eq!((of.low, of.high), (0.0, 1.0), "{part:?}");
        assert_eq!(of.reason, Some(Reason::given("no probe")));
    }
}

/// By hand: without isolation the 10 that retire may take up to 8 × 10 there, of whatever bound.
#[test]
fn without_isolation_what_bounds_it_is_open() {
    let parts = divide(&Evidence { isolated: Err(Reason::given("no path")), ..evidence() });
    for part in [Part::CoreBound, Part::FetchBandwidth] {
        let of = share(&parts, part);
        assert!(of.value == 0.0 && (0.7..0.75).contains(&of.high), "{part:?}: {of:?}");
    }
    assert!(share(&parts, Part::Unexplained).low < 0.2 + 1e-9, "{parts:?}");
}

/// By hand: without a table of µops 10 instructions are 5 to 40 slots; what the code takes in isolation, 20, is
/// measured: memory is what it was.
#[test]
fn a_table_of_uops_is_of_retiring_only() {
    let walk = Evidence { loads: loads(400.0), ..evidence() };
    let with = divide(&walk);
    let without =
        divide(&Evidence { retiring: Ok(Interval::new(10.0, 5.0, 40.0)), ..walk.clone() });
    assert_eq!(share(&with, Part::MemoryBound), share(&without, Part::MemoryBound));
    assert!(share(&without, Part::Retiring).high > 0.19, "{without:?}");
    // As long as in isolation, at most.
    let many = divide(&Evidence { retiring: Ok(Interval::new(30.0, 15.0, 120.0)), ..walk });
    assert!((share(&many, Part::Retiring).value - 0.2).abs() < 1e-9, "{many:?}");
    assert_eq!(share(&many, Part::MemoryBound).value, share(&with, Part::MemoryBound).value);
}

/// By hand: a clock known within a factor of 2: what retires, 10 % of the time, may be 0 to 20 %; loads that take all
/// that is left still do.
#[test]
fn an_unknown_clock_widens_what_is_in_cycles() {
    let cycles = Interval::relative(100.0, 1.0);
    let parts = divide(&Evidence { cycles, loads: loads(400.0), ..evidence() });
    assert!(share(&parts, Part::Retiring).high >= 0.2, "{parts:?}");
    assert!(share(&parts, Part::MemoryBound).high >= 0.8, "{parts:?}");
}

fn bound() -> impl Strategy<Value = BoundBy> {
    prop_oneof![
        Just(BoundBy::IssueWidth),
        Just(BoundBy::FrontEnd),
        Just(BoundBy::Core),
        Just(BoundBy::Unknown)
    ]
}

fn divisions() -> impl Strategy<Value = Divisions> {
    prop_oneof![
        Just(Divisions::Absent),
        Just(Divisions::Unknown),
        (0.0..=1.0_f64).prop_map(Divisions::Take),
        (0.0..=1.0_f64).prop_map(Divisions::AtLeast)
    ]
}

prop_compose! {
    /// Consistent evidence: code in isolation takes no longer than its slots one by one, and no longer than the
    /// program.
    fn consistent()(
        retired in 1.0..40.0_f64,
        alone in 0.0..1.0_f64,
        errors in (0.0..0.05_f64, 0.0..0.3_f64, 0.0..0.3_f64),
        wrong in 0.0..1.0_f64,
        bound in bound(),
        (is_loop, other_values) in (any::<bool>(), any::<bool>()),
        latency in 0.0..100.0_f64,
        loads in (0.0..300.0_f64, 0.0..1.0_f64),
        (levels, divisions) in ([0.0..1.0_f64, 0.0..1.0_f64, 0.0..1.0_f64, 0.0..1.0_f64], divisions()),
        fetch in prop_oneof![Just(0.0), 0.0..200.0_f64],
    ) -> Evidence {
        let least = 1.0 + errors.1;
        let most = (8.0 * retired + latency).min(95.0) / least;
        let cycles = retired + alone * (most - retired).max(0.0);
        let left = (100.0 - cycles) / (1.0 + errors.2);
        let carried = if is_loop { loads.0 * loads.1 } else { 0.0 };
        let all: f64 = levels.iter().sum();
        let levels = levels.map(|one| Interval::exact(loads.0 * one / all.max(1e-3)));
        Evidence {
            cycles: Interval::relative(100.0, errors.0),
            retiring: Ok(Interval::relative(retired, 0.03)),
            mispredicted: Mispredicted::known(Interval::relative(wrong * left, errors.2)),
            contention: None,
            isolated: Ok(Isolated { cycles: Interval::relative(cycles, errors.1), bound, loads: 0.0, among: 0.0 }),
            other_values,
            divisions,
            certain: IDLE,
            is_loop,
            latency,
            loads: Ok(Loads {
                at_most: Interval::exact(loads.0),
                carried: Interval::exact(carried),
                levels,
                unknown: 0.0,
            }),
            fetch,
            translation: fetch / 2.0,
        }
    }
}

/// The evidence as it is if only one item of it is off, and that by all of its error; all else as believed.
fn off_by_one(of: &Evidence) -> Vec<(&'static str, Evidence)> {
    let exact = |one: Interval| Interval::exact(one.value);
    let alone = |of: &Evidence, cycles: fn(Interval) -> f64| {
        let isolated = of.isolated.clone();
        isolated.map(|one| Isolated {
            cycles: Interval::exact(cycles(one.whole())),
            among: 0.0,
            ..one
        })
    };
    let believed = Evidence {
        cycles: exact(of.cycles),
        retiring: of.retiring.clone().map(exact),
        mispredicted: Mispredicted::known(exact(of.mispredicted.cycles)),
        isolated: alone(of, |of| of.value),
        ..of.clone()
    };
    let ends: [fn(Interval) -> f64; 2] = [|of| of.low, |of| of.high];
    let one = |end: fn(Interval) -> f64| {
        let at = |of: Interval| Interval::exact(end(of));
        [
            ("time", Evidence { cycles: at(of.cycles), ..believed.clone() }),
            ("slots", Evidence { retiring: of.retiring.clone().map(at), ..believed.clone() }),
            ("isolation", Evidence { isolated: alone(of, end), ..believed.clone() }),
            (
                "mispredictions",
                Evidence {
                    mispredicted: Mispredicted::known(at(of.mispredicted.cycles)),
                    ..believed.clone()
                },
            ),
        ]
    };
    ends.into_iter().flat_map(one).collect()
}

/// The evidence without one item, by the item's name. What mispredictions can take is as much as they do, or more.
fn without_one(of: &Evidence, more: f64) -> Vec<(&'static str, Evidence)> {
    let none = || Reason::given("fault");
    let lost = of.mispredicted.cycles.high;
    let bound = of.isolated.clone().map(|one| Isolated { bound: BoundBy::Unknown, ..one });
    let slots = |one: Interval| Interval::new(one.value, 0.5 * one.low, 4.0 * one.high);
    vec![
        ("counts", Evidence { retiring: Err(none()), ..of.clone() }),
        ("table of µops", Evidence { retiring: of.retiring.clone().map(slots), ..of.clone() }),
        ("cost of a misprediction", Evidence { mispredicted: unknown(lost + more), ..of.clone() }),
        ("isolation", Evidence { isolated: Err(none()), ..of.clone() }),
        ("bound", Evidence { isolated: bound, ..of.clone() }),
        ("loads", Evidence { loads: Err(none()), ..of.clone() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is taken away: each part's interval then holds what was there before.
    #[test]
    fn what_is_not_known_narrows_nothing(of in consistent(), more in 0.0..100.0_f64) {
        let with = divide(&of);
        prop_assert!(are_within(&with), "{with:?}");
        for (item, faulty) in without_one(&of, more) {
            let without = divide(&faulty);
            prop_assert!(are_within(&without), "without {item}: {without:?}");
            for part in WITHIN {
                let (Some(old), Some(new)) = (with.get(part), without.get(part)) else { continue };
                prop_assert!(
                    new.low - 1e-9 <= old.value && old.value <= new.high + 1e-9,
                    "without {item}, {part:?} was {old:?}, now {new:?}\n{with:?}\n{without:?}"
                );
            }
            let (old, new) = (with.backend(), without.backend());
            prop_assert!(
                new.low - 1e-9 <= old.value && old.value <= new.high + 1e-9,
                "without {item}, Backend Bound was {old:?}, now {new:?}\n{with:?}\n{without:?}"
            );
            let sum: f64 = without.iter().map(|(_, one)| one.value).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9, "without {}: {:?}", item, without);
            for part in ALL {
                let (old, new) = (share(&with, part).value, share(&without, part));
                prop_assert!(
                    new.low - 1e-9 <= old && old <= new.high + 1e-9,
                    "without {item}, {part:?} was {old}, now {new:?}\n{with:?}\n{without:?}"
                );
            }
        }
    }

    /// Whichever item is off by its error: Backend Bound then is within its ends.
    #[test]
    fn backend_bound_allows_for_each_error(of in consistent(), among in 0.0..0.3_f64) {
        let isolated = of.isolated.clone().map(|one| Isolated { among, ..one });
        let of = Evidence { isolated, ..of };
        let found = divide(&of).backend();
        for (item, off) in off_by_one(&of) {
            let parts = divide(&off);
            // So little is left to no cause, whatever it may be.
            let own = parts.backend().value + parts.of(Part::Unexplained).value.min(LEAST);
            // Errors of a quotient are of first order: 1 ÷ 0.95 is 1.0526.
            prop_assert!(found.low - 0.01 <= own, "{item}: {own} of {found:?}\n{of:?}\n{parts:?}");
        }
    }

    /// Only what depends on it moves: retiring has nothing to do with loads, nor with what a misprediction costs as
    /// long as there is time for both.
    #[test]
    fn what_is_not_known_moves_its_own_consumers(of in consistent()) {
        let with = divide(&of);
        let loads = divide(&Evidence { loads: Err(Reason::given("fault")), ..of.clone() });
        for part in [Part::Retiring, Part::BadSpeculation] {
            prop_assert_eq!(share(&with, part).value, share(&loads, part).value);
        }
        let cost = divide(&Evidence { mispredicted: unknown(1e-6), ..of.clone() });
        let none = divide(&Evidence { mispredicted: Mispredicted::default(), ..of });
        for part in ALL {
            let (a, b) = (share(&none, part).value, share(&cost, part).value);
            prop_assert!((a - b).abs() < 1e-6, "{:?}: {} and {}", part, a, b);
        }
    }

    /// Pieces analysed together: as each of them.
    #[test]
    fn several_pieces_lose_nothing(one in consistent(), other in consistent()) {
        let (one, other) =
            (Evidence { is_loop: false, ..one }, Evidence { is_loop: false, ..other });
        let with = divide_all(&[one.clone(), other.clone()]);
        prop_assert!(are_within(&with), "{with:?}");
        for (item, faulty) in without_one(&one, 0.0) {
            if ["loads", "isolation", "counts"].contains(&item) {
                // These are bounded by the samples of the piece.
                continue;
            }
            let without = divide_all(&[faulty, other.clone()]);
            for part in ALL {
                let (old, new) = (share(&with, part).value, share(&without, part));
                prop_assert!(
                    new.low - 1e-9 <= old && old <= new.high + 1e-9,
                    "without {item}, {part:?} was {old}, now {new:?}"
                );
            }
        }
    }
}
