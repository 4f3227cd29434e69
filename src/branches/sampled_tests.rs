//! Tests of how often branches of bursts are mispredicted.

use super::*;
use crate::predictor::LONGEST_HISTORY;
use tma::self_test::{MODELLED, Rate, Several, SeveralTargets};

/// Rules of a processor that remembers as much as the usual model.
fn rules(biased: Option<Biased>) -> Rules {
    Rules { biased, room: Room { least: 11, typical: 11, most: 11 }, ..Rules::default() }
}

/// Alternately called functions are predicted by a history with their addresses, and by no other: where it is not
/// known which the processor has, both are possible.
#[test]
fn calls_in_turn_are_mispredicted_by_a_history_without_them() {
    // In a loop, whose branch is taken each time.
    let target = |n: u64| 0x40_1000 + 0x20 * (n % 4);
    let call =
        |n: u64| Branch { address: 0x40, kind: Kind::Called { target: target(n), returns: None } };
    let back = Branch { address: 0x48, kind: Kind::Conditional { taken: true } };
    let bursts = [Burst {
        is_first: true,
        is_last: true,
        branches: (0..20_000).flat_map(|n| [call(n), back]).collect(),
    }];
    let of = |calls| {
        let rules = Rules { calls, alike: true, targets: Some(Rule::Last), ..rules(None) };
        let found = estimate(LONGEST_HISTORY, &rules, &bursts)[&0x40];
        (found.share, found.interval.1)
    };
    let (with, without) = (of(TargetHistory::With), of(TargetHistory::Low));
    assert!(with.0 < 0.01 && with.1 < 0.02, "{with:?}");
    assert!(without.0 > 0.99, "{without:?}");
    let unknown = of(TargetHistory::Unknown);
    assert!(unknown.0 < 0.01 && unknown.1 > 0.99, "{unknown:?}");
}

/// The address of a function's return, by its number.
type At = fn(u64) -> u64;

/// A branch of so many targets, at random or in turn; `returns` are addresses of the functions' returns.
fn several(of: u64, in_turn: bool, returns: Option<At>) -> Vec<Burst> {
    let mut random = fastrand::Rng::with_seed(4);
    let mut one = |n: u64| {
        let number = if in_turn { n % of } else { random.u64(..of) };
        let target = 0x40_1000 + 0x20 * number;
        let kind = match returns {
            Some(at) => Kind::Called { target, returns: Some(at(number)) },
            None => Kind::Indirect { target },
        };
        Branch { address: 0x40, kind }
    };
    let branches = (0..16_000).map(&mut one).collect();
    vec![Burst { is_first: true, is_last: true, branches }]
}

/// Of n random targets no predictor knows more than one in n. Which rule a processor follows does not matter to that; what
/// its self-test found for so many targets does.
#[test]
fn random_targets_are_mispredicted_by_every_rule() {
    for of in [2, 4, 8] {
        let ideal = 1.0 - 1.0 / of as f64;
        let bursts = several(of, false, None);
        let found = estimate(LONGEST_HISTORY, &rules(None), &bursts)[&0x40];
        let (low, high) = found.interval;
        assert!(low <= ideal + 0.02 && high >= ideal - 0.02, "{of}: {found:?}");
        // Every rule says the same; what more than two cost is not known.
        let is_narrow = high - low < 0.1;
        assert_eq!(is_narrow, of == 2, "{of}: {found:?}");
        let random = [None, Some(0.75), Some(0.875)];
        let jumps = Several { random, ..Several::default() };
        let asked =
            Rules { several: SeveralTargets { jumps, ..SeveralTargets::default() }, ..rules(None) };
        let (low, high) = estimate(LONGEST_HISTORY, &asked, &bursts)[&0x40].interval;
        assert!(high - low < 0.1, "{of}: {low} to {high}");
    }
    let random = [None, Some(0.75 * 1.2), None];
    let jumps = Several { random, ..Several::default() };
    let known =
        Rules { several: SeveralTargets { jumps, ..SeveralTargets::default() }, ..rules(None) };
    let found = estimate(LONGEST_HISTORY, &known, &several(4, false, None))[&0x40];
    assert!((0.88..0.92).contains(&found.share), "{found:?}");
}

/// Skewed targets are mispredicted between the rarer ones' share (the most frequent is predicted) and 1 − Σp² (the last is),
/// where the rule is not known; never all of them.
#[test]
fn skewed_targets_are_between_both_rules_where_that_is_not_known() {
    let mut random = fastrand::Rng::with_seed(6);
    let mut one = |_| {
        let number = if random.u8(..100) < 60 { 0 } else { 1 + random.u64(..3) };
        Branch { address: 0x40, kind: Kind::Indirect { target: 0x40_1000 + 0x20 * number } }
    };
    let branches = (0..20_000).map(&mut one).collect();
    let bursts = [Burst { is_first: true, is_last: true, branches }];
    let found = estimate(LONGEST_HISTORY, &rules(None), &bursts)[&0x40];
    let last = 1.0 - 0.6_f64.powi(2) - 3.0 * (0.4_f64 / 3.0).powi(2);
    let (low, high) = found.interval;
    assert!(low < 0.48 && (0.9 * last..0.7).contains(&high), "{last}: {found:?}");
}

/// One target of 90 %: none of the rules that predict it is wrong in more than the others' 10 %.
#[test]
fn a_frequent_target_may_always_be_predicted() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut one = |_| {
        let number = if random.u8(..100) < 90 { 0 } else { 1 + random.u64(..3) };
        Branch { address: 0x40, kind: Kind::Indirect { target: 0x40_1000 + 0x20 * number } }
    };
    let branches = (0..16_000).map(&mut one).collect();
    let bursts = [Burst { is_first: true, is_last: true, branches }];
    let last = Rules { targets: Some(Rule::Last), jumps: TargetHistory::With, ..rules(None) };
    let found = estimate(LONGEST_HISTORY, &last, &bursts)[&0x40];
    assert!(
        (0.09..0.11).contains(&found.interval.0) && found.interval.1 >= found.share,
        "{found:?}"
    );
}

/// A history with the lowest bits of addresses: functions of one size in turn are not predicted, those whose returns are
/// elsewhere are; either, where the returns are not known, or not whether the history has them.
#[test]
fn functions_in_turn_are_told_apart_by_where_they_return() {
    let of = |returns: Option<At>, apart| {
        let rules =
            Rules { calls: TargetHistory::Low, jumps: TargetHistory::Low, apart, ..rules(None) };
        estimate(LONGEST_HISTORY, &rules, &several(2, true, returns))[&0x40].interval
    };
    let same: At = |number| 0x1008 + 0x20 * number;
    let other: At = |number| 0x1008 + 0x24 * number;
    assert!(of(Some(same), Some(true)).0 > 0.4);
    assert!(of(Some(other), Some(true)).1 < 0.05);
    assert!(of(Some(other), Some(false)).0 > 0.4);
    for (low, high) in [of(Some(other), None), of(None, Some(true)), of(None, None)] {
        assert!(low < 0.05 && high > 0.4, "{low} {high}");
    }
}

fn random(length: usize, seed: u64, percent: u8) -> Vec<Branch> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut one = || {
        let kind = Kind::Conditional { taken: random.u8(..100) < percent };
        Branch { address: 0x40, kind }
    };
    (0..length).map(|_| one()).collect()
}

/// One in two and one in ten by construction; the model adds some to the latter.
#[test]
fn shares_of_random_branches_lie_in_their_intervals() {
    for (percent, low, high) in [(50, 0.49, 0.51), (10, 0.095, 0.13)] {
        let part = |seed| Burst {
            is_first: seed == 0,
            is_last: false,
            branches: random(16_000, seed, percent),
        };
        let bursts: Vec<Burst> = (0..8).map(part).collect();
        // A processor that mispredicts them as often as the model.
        let rate = |(one_in, alone, _)| Rate { one_in, alone: Some(alone), among: None };
        let biased = Some(Biased { rates: MODELLED.into_iter().map(rate).collect() });
        let found = estimate(LONGEST_HISTORY, &rules(biased), &bursts)[&0x40];
        let (from, to) = found.interval;
        assert!(from <= high && to >= low && to - from < 0.03, "{percent} %: {found:?}");
        // For a processor whose rates are not known, a biased one may be mispredicted more often.
        let unknown = estimate(LONGEST_HISTORY, &rules(None), &bursts)[&0x40];
        assert!(unknown.interval.0 <= from + 0.01 && unknown.interval.1 >= to - 0.01);
        assert_eq!(unknown.interval.1 > 1.5 * to, percent == 10, "{unknown:?}");
        // A quarter of all, and the start of each of the other six bursts.
        assert_eq!(found.seen, 6 * (16_000 - 1024));
    }
}

/// A Redwood Cove mispredicts a branch of 1/8 by about 60 % more often than its rarer outcome comes.
#[test]
fn random_branches_are_mispredicted_as_often_as_this_processor_does() {
    let rate = Rate { one_in: 8, alone: Some(1.6 / 8.0), among: None };
    let rules = rules(Some(Biased { rates: vec![rate] }));
    let mut draw = fastrand::Rng::with_seed(5);
    let mut one = |_| {
        let kind = Kind::Conditional { taken: draw.u8(..8) == 0 };
        Branch { address: 0x40, kind }
    };
    let branches = (0..100_000).map(&mut one).collect();
    let burst = [Burst { is_first: true, is_last: true, branches }];
    let found = estimate(LONGEST_HISTORY, &rules, &burst)[&0x40];
    assert!((0.18..0.22).contains(&found.share), "{found:?}");
}

/// Half of the models' outcomes of a sequence that one remembers and the other does not: the interval has both. What the
/// self-test says decides how far apart they are.
#[test]
fn a_sequence_that_not_every_predictor_remembers_is_between_both() {
    let sequence = random(1 << 14, 8, 50);
    let bursts: Vec<Burst> = (0..32)
        .map(|n| Burst { is_first: n == 0, is_last: n == 31, branches: sequence.clone() })
        .collect();
    let of = |least, typical, most| {
        let rules = Rules { room: Room { least, typical, most }, ..Rules::default() };
        estimate(LONGEST_HISTORY, &rules, &bursts)[&0x40]
    };
    let (small, large, unknown) = (of(8, 8, 8), of(13, 13, 13), of(8, 11, 13));
    assert!(small.share > 0.3 && small.interval.0 > 0.3, "{small:?}");
    assert!(large.share < 0.01 && large.interval.1 < 0.01, "{large:?}");
    assert!(unknown.interval.0 < 0.01 && unknown.interval.1 > 0.3, "{unknown:?}");
    assert!(unknown.share < 0.1, "{unknown:?}");
}

#[test]
fn a_branch_that_only_the_beginning_has_is_modelled_from_that() {
    let other = |n: usize| Branch { address: 0x80 + n as u64 % 2, kind: random(1, 1, 0)[0].kind };
    let first = Burst { is_first: false, is_last: false, branches: random(500, 1, 50) };
    let later = Burst { branches: (0..60_000).map(other).collect(), ..first.clone() };
    let found = estimate(LONGEST_HISTORY, &rules(None), &[first, later]);
    let (early, late) = (found[&0x40], found[&0x80]);
    assert_eq!((early.seen, early.is_learning, late.is_learning), (500, true, false));
    assert!(early.share > 0.3 && early.interval.1 >= early.share, "{early:?}");
}

#[test]
fn a_whole_run_is_counted_from_its_start() {
    let whole = [Burst { is_first: true, is_last: true, branches: random(100, 1, 0) }];
    let found = estimate(LONGEST_HISTORY, &rules(None), &whole)[&0x40];
    assert_eq!((found.seen, found.interval), (100, (found.share, found.share)));
}

fn measured(times: f64) -> Biased {
    let rate = |(one_in, alone, _): (u32, f64, f64)| Rate {
        one_in,
        alone: Some(if one_in == 2 { alone } else { alone * times }),
        among: None,
    };
    Biased { rates: MODELLED.into_iter().map(rate).collect() }
}

/// By hand: at 1/8 everything random is 1.5 times as frequent; half of it predictable, 1.25 times; fair and predictable
/// branches as the model has them.
#[test]
fn only_what_is_random_and_biased_is_corrected() {
    let of = |taken, mispredicted| {
        factor(&measured(1.5), &Tally { executions: 800, taken, mispredicted, ..Tally::default() })
    };
    assert!((of(100, 110) - 1.5).abs() < 1e-9 && (of(700, 100) - 1.5).abs() < 1e-9);
    assert!((of(100, 50) - 1.25).abs() < 1e-9);
    assert_eq!((of(100, 0), of(0, 0), of(400, 400)), (1.0, 1.0, 1.0));
    // Between 1/2 and 1/4, by the logarithm: 1/2.83 is half of the way.
    let most = |taken, mispredicted| {
        most(&Tally { executions: 800, taken, mispredicted, ..Tally::default() })
    };
    assert!((most(100, 100) - 2.0).abs() < 1e-9 && (most(200, 100) - 1.5).abs() < 1e-9);
    assert_eq!((most(400, 400), most(100, 0), most(0, 0)), (1.0, 1.0, 1.0));
    let between = of(283, 300);
    assert!((between - 1.25).abs() < 0.01, "{between}");
    assert_eq!(factor(&measured(1.5), &Tally::default()), 1.0);
}
