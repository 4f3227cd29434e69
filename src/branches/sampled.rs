//! Bursts of executed branches, taken now and then from a run → how often each branch is mispredicted. The model's
//! shares of random branches that go one way more often are corrected by those that this processor showed in its
//! self-test.

use crate::predictor::{Branch, Kind, Predictor, Tally, tally};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread::{Builder, ScopedJoinHandle};
use tma::self_test::{Biased, CallHistory, Room, Rules};

/// Branches at the start of a burst that are not counted: the model's history is of another time.
/// Longer than the longest history.
const WARM: usize = 1024;
/// Share of the branches, in the first bursts, from which the model only learns.
const LEARNT: f64 = 0.25;
/// Branches of a slice: how much slices differ gives the interval.
const SLICE: usize = 4096;
/// Quantile of a 95 % interval.
const Z: f64 = 1.96;

/// Consecutive branches of one thread.
#[derive(Debug, Clone)]
pub struct Burst {
    /// Whether nothing ran before.
    pub is_first: bool,
    /// Whether nothing ran after it.
    pub is_last: bool,
    /// The branches, in order.
    pub branches: Vec<Branch>,
}

/// Model results for a branch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Executions that were seen.
    pub seen: u64,
    /// Share of the executions that are mispredicted.
    pub share: f64,
    /// Its 95 % interval, of the sample alone: not of what the model does otherwise than a processor.
    pub interval: (f64, f64),
    /// It was seen only where the model learns, which mispredicts more then.
    pub is_learning: bool,
}

/// The estimates of all branches, by address: of models that remember less and more than the processor, which follows these
/// rules and sees `longest` branches back, and of each rule that is not known; the interval has all of them.
pub fn estimate(longest: usize, rules: &Rules, bursts: &[Burst]) -> BTreeMap<u64, Estimate> {
    let Room { least, typical, most } = rules.room;
    let of = |(size, rules): (u32, &Rules)| {
        of_model(&mut Predictor::new(longest, rules, size), rules, bursts)
    };
    let of = &of;
    let without = Rules { calls: CallHistory::Low, ..rules.clone() };
    let sizes = BTreeSet::from([least, typical, most]);
    let mut histories = vec![rules];
    let is_call =
        |branch: &Branch| matches!(branch.kind, Kind::Called { .. } | Kind::IndirectCall { .. });
    if rules.calls == CallHistory::Unknown
        && bursts.iter().any(|one| one.branches.iter().any(is_call))
    {
        histories.push(&without);
    }
    let all = histories.into_iter().flat_map(|rules| sizes.iter().map(move |size| (*size, rules)));
    let others: Vec<(u32, &Rules)> =
        all.filter(|(size, of)| *size != typical || of.calls != rules.calls).collect();
    let (mut all, others) = std::thread::scope(|scope| {
        let spawned = |model| (model, Builder::new().spawn_scoped(scope, move || of(model)));
        let others: Vec<_> = others.into_iter().map(spawned).collect();
        let own = of((typical, rules));
        // Without one of them the interval would be too narrow.
        let joined =
            |(model, thread): ((u32, &Rules), io::Result<ScopedJoinHandle<'_, _>>)| match thread {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                // No more threads may be started.
                Err(_) => of(model),
            };
        (own, others.into_iter().map(joined).collect::<Vec<_>>())
    });
    for (address, other) in others.into_iter().flatten() {
        let Some(own) = all.get_mut(&address) else { continue };
        let (low, high) = own.interval;
        own.interval = (low.min(other.interval.0), high.max(other.interval.1));
    }
    all
}

/// Results of one model for all branches. In a whole run everything is counted; otherwise executions from which the
/// model still learns count only for branches that have no others.
fn of_model(predictor: &mut Predictor, rules: &Rules, bursts: &[Burst]) -> BTreeMap<u64, Estimate> {
    let all: usize = bursts.iter().map(|burst| burst.branches.len()).sum();
    let is_whole = bursts.iter().all(|burst| burst.is_first && burst.is_last);
    let learnt = if is_whole { 0 } else { (all as f64 * LEARNT) as usize };
    let (mut slices, mut learning, mut done) = (Vec::new(), Vec::new(), 0);
    for burst in bursts {
        let warm = if burst.is_first { 0 } else { WARM };
        let skipped = warm.max(learnt.saturating_sub(done)).min(burst.branches.len());
        predictor.forget_calls();
        let (first, rest) = burst.branches.split_at(skipped);
        for slice in first.chunks(SLICE) {
            learning.push(tally(predictor, slice.iter().copied()));
        }
        done += burst.branches.len();
        for slice in rest.chunks(SLICE) {
            slices.push(tally(predictor, slice.iter().copied()));
        }
    }
    let of = |slices: Vec<BTreeMap<u64, Tally>>, is_learning| {
        let mut found: BTreeMap<u64, Vec<Tally>> = BTreeMap::new();
        for (address, tally) in slices.into_iter().flatten() {
            found.entry(address).or_default().push(tally);
        }
        let one = move |slices: &[Tally]| {
            let mut estimate = Estimate { is_learning, ..ratio(slices, is_whole) };
            if !is_whole {
                // A processor sees what is between the bursts, too, and has learnt more than the model.
                let late = &slices[slices.len() * 2 / 3..];
                estimate.interval.0 = estimate.interval.0.min(ratio(late, true).share);
            }
            corrected(estimate, slices, rules.biased.as_ref())
        };
        found.into_iter().map(move |(address, slices)| (address, one(&slices)))
    };
    let mut all: BTreeMap<u64, Estimate> = of(slices, false).collect();
    for (address, estimate) in of(learning, true) {
        all.entry(address).or_insert(estimate);
    }
    all
}

/// As often as the processor mispredicts such branches; where that is not known, up to as often as any does.
fn corrected(estimate: Estimate, slices: &[Tally], biased: Option<&Biased>) -> Estimate {
    let sum = |get: fn(&Tally) -> u64| slices.iter().map(get).sum();
    let all = Tally {
        executions: sum(|t| t.executions),
        taken: sum(|t| t.taken),
        mispredicted: sum(|t| t.mispredicted),
    };
    let times = |share: f64, factor: f64| (share * factor).min(1.0);
    let (low, high) = estimate.interval;
    let Some(biased) = biased else {
        return Estimate { interval: (low, times(high, most(&all))), ..estimate };
    };
    let factor = factor(biased, &all);
    let of = |share| times(share, factor);
    Estimate { share: of(estimate.share), interval: (of(low), of(high)), ..estimate }
}

/// The ratio estimate of a share from clusters (Cochran, Sampling Techniques, 6.3 and 9A.1).
fn ratio(slices: &[Tally], is_whole: bool) -> Estimate {
    let seen: u64 = slices.iter().map(|t| t.executions).sum();
    let wrong: u64 = slices.iter().map(|t| t.mispredicted).sum();
    let share = wrong as f64 / seen.max(1) as f64;
    if is_whole {
        return Estimate { seen, share, interval: (share, share), is_learning: false };
    }
    let number = slices.len() as f64;
    let deviation = |t: &Tally| t.mispredicted as f64 - share * t.executions as f64;
    let squares: f64 = slices.iter().map(|t| deviation(t).powi(2)).sum();
    // One slice says nothing of the others; a share of 0 in few executions need not be 0: 3 ÷ n is the
    // end of a 95 % interval then (Hanley and Lippman-Hand, JAMA 249, 1983).
    let rare = 3.0 / seen.max(1) as f64;
    let error = match number > 1.0 {
        true => Z * (squares * number / (number - 1.0)).sqrt() / seen.max(1) as f64,
        false => 1.0,
    };
    let high = (share + error.max(if wrong == 0 { rare } else { 0.0 })).min(1.0);
    let interval = ((share - error).max(0.0), high);
    Estimate { seen, share, interval, is_learning: false }
}

/// By how much more often than the model says a branch is mispredicted that did this.
///
/// Only what is random is corrected: a branch whose rarer outcomes the model predicts is as predictable for the processor.
/// Half predictable, half corrected.
pub fn factor(biased: &Biased, tally: &Tally) -> f64 {
    random(tally).map_or(1.0, |(rarer, random)| 1.0 + random * (biased.factor(rarer) - 1.0))
}

/// The most that [`factor`] may be where nothing was measured: twice for branches that go the rarer way in a quarter of
/// their executions or less (1.3 to 1.7 times was measured, `tests/processors/self-tests`), once for fair ones.
pub fn most(tally: &Tally) -> f64 {
    random(tally)
        .map_or(1.0, |(rarer, random)| 1.0 + random * (-rarer.log2() - 1.0).clamp(0.0, 1.0))
}

/// The share of a branch's rarer outcome, and how far it is random: 1 where it is mispredicted as often as that comes, or
/// more often.
fn random(tally: &Tally) -> Option<(f64, f64)> {
    let modelled = tally.mispredicted_share()?;
    let rarer = tally.taken.min(tally.executions - tally.taken) as f64 / tally.executions as f64;
    (rarer > 0.0).then(|| (rarer, (modelled / rarer).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predictor::LONGEST_HISTORY;
    use tma::self_test::{MODELLED, Rate, Rule};

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
        let call = |n: u64| Branch { address: 0x40, kind: Kind::Called { target: target(n) } };
        let back = Branch { address: 0x48, kind: Kind::Conditional { taken: true } };
        let bursts = [Burst {
            is_first: true,
            is_last: true,
            branches: (0..20_000).flat_map(|n| [call(n), back]).collect(),
        }];
        let of = |calls| {
            let rules = Rules { calls, targets: Rule::Last, ..rules(None) };
            let found = estimate(LONGEST_HISTORY, &rules, &bursts)[&0x40];
            (found.share, found.interval.1)
        };
        let (with, without) = (of(CallHistory::With), of(CallHistory::Low));
        assert!(with.0 < 0.01 && with.1 < 0.02, "{with:?}");
        assert!(without.0 > 0.99, "{without:?}");
        let unknown = of(CallHistory::Unknown);
        assert!(unknown.0 < 0.01 && unknown.1 > 0.99, "{unknown:?}");
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
        let other =
            |n: usize| Branch { address: 0x80 + n as u64 % 2, kind: random(1, 1, 0)[0].kind };
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
            factor(&measured(1.5), &Tally { executions: 800, taken, mispredicted })
        };
        assert!((of(100, 110) - 1.5).abs() < 1e-9 && (of(700, 100) - 1.5).abs() < 1e-9);
        assert!((of(100, 50) - 1.25).abs() < 1e-9);
        assert_eq!((of(100, 0), of(0, 0), of(400, 400)), (1.0, 1.0, 1.0));
        // Between 1/2 and 1/4, by the logarithm: 1/2.83 is half of the way.
        let most = |taken, mispredicted| most(&Tally { executions: 800, taken, mispredicted });
        assert!((most(100, 100) - 2.0).abs() < 1e-9 && (most(200, 100) - 1.5).abs() < 1e-9);
        assert_eq!((most(400, 400), most(100, 0), most(0, 0)), (1.0, 1.0, 1.0));
        let between = of(283, 300);
        assert!((between - 1.25).abs() < 0.01, "{between}");
        assert_eq!(factor(&measured(1.5), &Tally::default()), 1.0);
    }
}
