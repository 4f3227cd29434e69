//! Behaviour of every predictor with a long history, and limits of all: expected shares follow from how the streams are
//! made.

use super::*;
use tma::self_test::{FIRST_MODELLED, MODELLED, MODELLED_REPEATING, Rule};

const WARM: usize = 20_000;
const COUNTED: usize = 50_000;

/// Shares mispredicted by address, after a warm-up.
fn shares(stream: impl FnMut() -> Vec<Branch>) -> BTreeMap<u64, f64> {
    shares_of(Predictor::default(), stream)
}

fn shares_of(
    mut predictor: Predictor,
    mut stream: impl FnMut() -> Vec<Branch>,
) -> BTreeMap<u64, f64> {
    let mut run = |branches: usize| {
        let mut all: BTreeMap<u64, Tally> = BTreeMap::new();
        let mut done = 0;
        while done < branches {
            for branch in stream() {
                all.entry(branch.address).or_default().count(branch.kind, predictor.run(branch));
                done += 1;
            }
        }
        all
    };
    run(WARM);
    run(COUNTED).iter().map(|(at, tally)| (*at, tally.mispredicted_share().unwrap())).collect()
}

fn conditional(address: u64, taken: bool) -> Branch {
    Branch { address, kind: Kind::Conditional { taken } }
}

fn jump(address: u64, target: u64) -> Branch {
    Branch { address, kind: Kind::Indirect { target } }
}

#[test]
fn random_branches_are_mispredicted_as_often_as_their_rarer_outcome() {
    for (percent, low, high) in [(50, 0.47, 0.53), (10, 0.09, 0.14), (2, 0.018, 0.035)] {
        let mut random = fastrand::Rng::with_seed(7);
        let share = shares(|| vec![conditional(0x40, random.u8(..100) < percent)])[&0x40];
        assert!((low..high).contains(&share), "{percent} %: {share}");
    }
}

#[test]
fn loops_of_fixed_trips_within_the_history_are_predicted() {
    for trips in [4, 17, 100] {
        let mut n = 0_u64;
        let share = shares(|| {
            n += 1;
            vec![conditional(0x40, !n.is_multiple_of(trips))]
        })[&0x40];
        assert!(share < 0.001, "{trips} trips: {share}");
    }
}

/// Beyond the history every exit looks like the iteration before.
#[test]
fn each_exit_of_a_longer_loop_is_mispredicted() {
    let mut n = 0_u64;
    let share = shares(|| {
        n += 1;
        vec![conditional(0x40, !n.is_multiple_of(2_000))]
    })[&0x40];
    assert!((0.0004..0.0012).contains(&share), "{share}");
}

#[test]
fn a_branch_that_follows_another_is_predicted() {
    let mut random = fastrand::Rng::with_seed(3);
    let found = shares(|| {
        let (a, b) = (random.bool(), random.bool());
        let between = (0..6).map(|n| conditional(0x100 + n, true));
        let first = [conditional(0x40, a), conditional(0x50, b)];
        let last = [conditional(0x60, a != b)];
        first.into_iter().chain(between).chain(last).collect()
    });
    assert!(found[&0x40] > 0.45 && found[&0x50] > 0.45, "{found:?}");
    assert!(found[&0x60] < 0.02, "{found:?}");
}

/// Like sorted data: 1,000 not taken, then 1,000 taken.
#[test]
fn a_branch_that_changes_rarely_is_mispredicted_when_it_does() {
    let mut n = 0_u64;
    let share = shares(|| {
        n += 1;
        vec![conditional(0x40, n % 2_000 < 1_000), conditional(0x60, true)]
    })[&0x40];
    assert!(share < 0.004, "{share}");
}

#[test]
fn targets_in_turn_are_predicted_and_random_ones_are_not() {
    let mut n = 0_u64;
    let turn = shares(|| {
        n += 1;
        vec![jump(0x40, [0x1000, 0x2000, 0x3000, 0x1000, 0x4000][n as usize % 5])]
    })[&0x40];
    assert!(turn < 0.001, "{turn}");
    let mut random = fastrand::Rng::with_seed(5);
    let any = shares(|| vec![jump(0x40, 0x1000 * random.u64(1..5))])[&0x40];
    assert!((0.70..0.80).contains(&any), "{any}");
    let mut skewed = fastrand::Rng::with_seed(6);
    let mostly = shares(|| {
        let target = if skewed.u8(..100) < 90 { 0x1000 } else { 0x1000 * skewed.u64(2..5) };
        vec![jump(0x40, target)]
    })[&0x40];
    assert!((0.09..0.16).contains(&mostly), "{mostly}");
}

/// Two targets at random: ideally the most frequent one is wrong with the rarer one's share p, the last one with 2p (1
/// − p). The self-test distinguishes the rules by these shares.
#[test]
fn random_targets_are_mispredicted_by_the_rule() {
    let mut off = Vec::new();
    for rule in [Rule::MostFrequent, Rule::Last] {
        let expected = rule.mispredicts();
        for (one_in, expected) in [(4, expected.quarter), (8, expected.eighth)] {
            let mut random = fastrand::Rng::with_seed(5);
            let rules = Rules { targets: Some(rule), ..Rules::default() };
            let predictor = Predictor::new(LONGEST_HISTORY, &rules, 11);
            let share = shares_of(predictor, || {
                vec![jump(0x40, if random.u32(..one_in) == 0 { 0x1000 } else { 0x2000 })]
            })[&0x40];
            let is_close = (share - expected).abs() < 0.012;
            off.extend((!is_close).then(|| format!("{rule:?}, one in {one_in}: {share}")));
        }
    }
    assert!(off.is_empty(), "{off:?}");
}

/// By hand: 40 nested calls; the stack has the last 32.
#[test]
fn returns_are_predicted_as_deep_as_the_stack() {
    let mut predictor = Predictor::default();
    let mut mispredicted = |depth: u64| {
        (0..depth).for_each(|at| {
            _ = predictor.run(Branch { address: 0x40, kind: Kind::Call { back: 0x1000 + at } });
        });
        let back = (0..depth).rev();
        back.filter(|at| {
            !predictor.run(Branch { address: 0x80, kind: Kind::Return { target: 0x1000 + at } })
        })
        .count()
    };
    assert_eq!((mispredicted(32), mispredicted(40)), (0, 8));
}

/// Measured on Zen 5: for 144 calls alternating among p places, 1 − 1/p of the returns of all but the innermost 32 are
/// mispredicted.
#[test]
fn below_the_stack_one_address_is_predicted() {
    for places in [1, 2, 4, 8] {
        let mut predictor = Predictor::default();
        let back = |depth| 0x1000 + depth % places;
        for depth in 0..144 {
            predictor.run(Branch { address: 0x40, kind: Kind::Call { back: back(depth) } });
        }
        let wrong = (0..144).rev().filter(|depth| {
            let kind = Kind::Return { target: back(*depth) };
            !predictor.run(Branch { address: 0x80, kind })
        });
        assert_eq!(wrong.count() as u64, 112 - 112 / places, "{places} places");
    }
}

/// Measured on Zen 4, of two places: none of calls from them alternately, two thirds of those below a stack of 32 where
/// every third call is from the one (32 is 2 modulo 3). An indirect predictor knows both patterns.
#[test]
fn below_the_stack_it_is_read_around_its_end_or_the_history_decides() {
    let wrong = |returns, period: u64| {
        let rules = Rules { returns, ..Rules::default() };
        let mut predictor = Predictor::new(LONGEST_HISTORY, &rules, 11);
        let mut nest = || {
            let back = |depth: u64| 0x1000 + u64::from(depth.is_multiple_of(period));
            let mut run = |address, kind| predictor.run(Branch { address, kind });
            for depth in 0..62 {
                let taken = depth % period == 0;
                run(0x40, Kind::Conditional { taken });
                run(0x50, Kind::Call { back: back(depth) });
            }
            (0..62).rev().filter(|d| !run(0x80, Kind::Return { target: back(*d) })).count()
        };
        (0..200).for_each(|_| _ = nest());
        nest()
    };
    assert_eq!((wrong(Below::Around, 2), wrong(Below::Around, 3)), (0, 20));
    assert_eq!(wrong(Below::History, 2), 0);
    assert_eq!(wrong(Below::Oldest, 2), 15);
}

/// 40 calls from one place: what stays in the stack is the right address, but for that of the first.
#[test]
fn deep_calls_from_one_place_return_to_it() {
    let mut predictor = Predictor::default();
    let back = |depth| if depth == 0 { 0x2000 } else { 0x1000 };
    for depth in 0..40 {
        predictor.run(Branch { address: 0x40, kind: Kind::Call { back: back(depth) } });
    }
    let return_to = |depth| Branch { address: 0x80, kind: Kind::Return { target: back(depth) } };
    let wrong: Vec<u64> = (0..40).rev().filter(|d| !predictor.run(return_to(*d))).collect();
    assert_eq!(wrong, [0]);
    // A return whose call was not seen says nothing.
    assert!(predictor.run(return_to(0)));
}

#[test]
fn a_tally_counts_by_address() {
    let stream = [conditional(0x40, true), conditional(0x40, false), jump(0x50, 0x90)];
    let rules = Rules { targets: Some(Rule::Last), ..Rules::default() };
    let all = tally(&mut Predictor::new(0, &rules, 11), stream);
    assert_eq!((all[&0x40].executions, all[&0x40].taken), (2, 1));
    assert_eq!((all[&0x50].executions, all[&0x50].taken, all[&0x50].mispredicted), (1, 1, 1));
}

/// [`MODELLED`], which measured shares are compared with, is as the model predicts the streams of the self-test's
/// branches.
#[test]
fn the_model_s_shares_of_biased_random_branches_are_those_stated() {
    for (one_in, alone, among) in MODELLED {
        let mut random = fastrand::Rng::with_seed(9);
        let mut of = |others: u64| {
            let found = shares(|| {
                let mut all: Vec<Branch> =
                    (0..others).map(|n| conditional(0x100 + 5 * n, true)).collect();
                all.extend([conditional(0x40, random.u32(..one_in) != 0), conditional(0x80, true)]);
                all
            });
            found[&0x40]
        };
        let (found, between) = (of(0), of(16));
        let close = |found: f64, stated: f64| (found / stated - 1.0).abs() < 0.15;
        assert!(close(found, alone), "1/{one_in}: {found}, stated {alone}");
        assert!(close(between, among), "1/{one_in} among others: {between}, stated {among}");
    }
}

/// [`MODELLED_REPEATING`], which measured rates of the self-test's sequences are compared with, is as the model
/// predicts.
#[test]
fn the_model_s_shares_of_repeating_sequences_are_those_stated() {
    /// Repeats to learn in, and after them.
    const REPEATS: (u64, u64) = (24, 4);
    const SIZE: u32 = 8;
    for (at, stated) in MODELLED_REPEATING.into_iter().enumerate() {
        let length = 1_u64 << (SIZE as i32 + FIRST_MODELLED + at as i32);
        let mut random = fastrand::Rng::with_seed(3);
        let sequence: Vec<bool> = (0..length).map(|_| random.bool()).collect();
        let mut predictor = Predictor::new(LONGEST_HISTORY, &Rules::default(), SIZE);
        let mut wrong = 0;
        for n in 0..(REPEATS.0 + REPEATS.1) * length {
            let right = predictor.run(conditional(0x40, sequence[(n % length) as usize]));
            predictor.run(conditional(0x80, true));
            wrong += u64::from(!right && n >= REPEATS.0 * length);
        }
        let share = wrong as f64 / (REPEATS.1 * length) as f64;
        assert!((share - stated).abs() < 0.04, "{length}: {share}, stated {stated}");
    }
}
