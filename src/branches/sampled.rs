//! Bursts of executed branches, taken now and then from a run → how often each branch is mispredicted. The model's
//! shares of random branches that go one way more often are corrected by those that this processor showed in its
//! self-test.

use crate::predictor::{Branch, Kind, Predictor, Tally, tally};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread::{Builder, ScopedJoinHandle};
use tma::self_test::{Biased, Room, Rule, Rules, Several, TargetHistory};

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
    let sizes = BTreeSet::from([least, typical, most]);
    let other_rules = others(rules, bursts);
    let with_sizes = |rules| sizes.iter().map(move |size| (*size, rules));
    let of_rules = with_sizes(rules).filter(|(size, _)| *size != typical);
    let others: Vec<(u32, &Rules)> =
        of_rules.chain(other_rules.iter().flat_map(with_sizes)).collect();
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
    for (address, rarer) in rarer_targets(bursts) {
        if let Some(own) = all.get_mut(&address) {
            own.interval.0 = own.interval.0.min(rarer);
        }
    }
    all
}

/// By indirect branch, the share of its executions that do not go to its most frequent target: a processor that predicts that is
/// wrong in no more, while the model's histories of random targets blur it.
fn rarer_targets(bursts: &[Burst]) -> BTreeMap<u64, f64> {
    let mut all: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
    for Branch { address, kind } in bursts.iter().flat_map(|burst| &burst.branches) {
        if let Kind::Indirect { target }
        | Kind::Called { target, .. }
        | Kind::IndirectCall { target, .. } = kind
        {
            *all.entry(*address).or_default().entry(*target).or_default() += 1;
        }
    }
    let share = |targets: BTreeMap<u64, u64>| {
        let most = targets.values().max().copied().unwrap_or(0);
        1.0 - most as f64 / targets.values().sum::<u64>().max(1) as f64
    };
    all.into_iter().map(|(address, targets)| (address, share(targets))).collect()
}

/// Rules that the processor may have instead where one is not known that these branches ask for: the last target is
/// predicted, or targets of which nothing is known to differ in the history are alike there, or both.
fn others(rules: &Rules, bursts: &[Burst]) -> Vec<Rules> {
    let kinds = || bursts.iter().flat_map(|burst| &burst.branches).map(|branch| branch.kind);
    let jumps = kinds().any(|kind| matches!(kind, Kind::Indirect { .. }));
    let calls = kinds().any(Kind::is_call);
    let is_in_doubt = |kind: Kind| match kind {
        Kind::Called { returns: Some(_), .. } => rules.apart.is_none(),
        kind if kind.is_call() => rules.apart != Some(false),
        _ => false,
    };
    let doubtful = |history, has: bool, others: &dyn Fn() -> bool| match history {
        TargetHistory::Unknown => has,
        TargetHistory::With => false,
        TargetHistory::Low => has && others(),
    };
    let of_calls = doubtful(rules.calls, calls, &|| kinds().any(is_in_doubt));
    let of_jumps = doubtful(rules.jumps, jumps, &|| rules.apart != Some(false));
    let low = |history, is_doubtful| if is_doubtful { TargetHistory::Low } else { history };
    let alike = Rules {
        calls: low(rules.calls, of_calls),
        jumps: low(rules.jumps, of_jumps),
        apart: rules.apart.or(Some(false)),
        alike: true,
        ..rules.clone()
    };
    let last = |rules: &Rules| Rules { targets: Some(Rule::Last), ..rules.clone() };
    match (rules.targets.is_none() && (calls || jumps), of_calls || of_jumps) {
        (false, false) => Vec::new(),
        (true, false) => vec![last(rules)],
        (false, true) => vec![alike],
        (true, true) => vec![last(rules), last(&alike), alike],
    }
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
            corrected(estimate, slices, rules)
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
fn corrected(estimate: Estimate, slices: &[Tally], rules: &Rules) -> Estimate {
    let sum = |get: fn(&Tally) -> u64| slices.iter().map(get).sum();
    let all = Tally {
        executions: sum(|t| t.executions),
        taken: sum(|t| t.taken),
        mispredicted: sum(|t| t.mispredicted),
        jumped: sum(|t| t.jumped),
        called: sum(|t| t.called),
    };
    let times = |share: f64, factor: f64| (share * factor).min(1.0);
    let (low, high) = estimate.interval;
    let several = |of: &Several| (of.factor(estimate.share), of.error(estimate.share));
    let (factor, error) = match (&rules.biased, all.called > 0, all.jumped > 0) {
        (_, true, _) => several(&rules.several.calls),
        (_, _, true) => several(&rules.several.jumps),
        (Some(biased), ..) => (factor(biased, &all), 0.0),
        (None, ..) => {
            return Estimate { interval: (low, times(high, most(&all))), ..estimate };
        }
    };
    let of = |share, error: f64| times(share, factor * (1.0 + error));
    let interval = (of(low, -error), of(high, error));
    Estimate { share: of(estimate.share, 0.0), interval, ..estimate }
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
#[path = "sampled_tests.rs"]
mod tests;
