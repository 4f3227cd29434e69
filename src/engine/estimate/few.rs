//! Functions with few samples each, too many to analyse one by one: all of them are counted, with those of their files
//! that have no samples, or a random part where that is much code.

use crate::hot::hottest::{Hot, Hottest, is_kernel};
use fastrand::Rng;
use isa::flow::Flow;
use profile::hot::Profile;
use report::documents::count::Count;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Functions with fewer samples are analysed as one, if there are too many of them: the hottest of these are hottest by
/// chance.
const SAMPLES: f64 = 16.0;
/// Time that counting them takes at most, as a multiple of a run without probes, or in seconds, if that is more.
const MOST: f64 = 0.5;
const LEAST_SECONDS: f64 = 3.0;
/// Seconds until a byte of code has its probes and is analysed: of the 20 MB of GCC's cc1 half as much (Zen 4, two
/// processors), of simple code less.
const EACH_BYTE: f64 = 6e-7;
/// Time that probes add to counted code, about (docs/results/speed.md).
const EXECUTED: f64 = 0.5;
/// The share of the time for functions without samples at least.
const UNSEEN: f64 = 0.25;
/// All draws are the same for the same program.
pub(super) const SEED: u64 = 34;

/// Functions with few samples each, to be counted.
pub(super) struct Few {
    /// Those with samples, then others of their files.
    pub functions: Vec<Hot>,
    /// The control flow of those with samples. It stays, however much the profile keeps.
    pub flows: Vec<Option<Arc<Flow>>>,
    /// How many each stands for.
    pub times: Vec<f64>,
    /// The share of their code that is counted.
    pub counted: f64,
}

/// Takes the functions with few samples out of the `hot` ones, and adds all others.
pub(super) fn choose(
    profile: &mut Profile,
    hot: &mut Hottest,
    flows: &mut Vec<Option<Arc<Flow>>>,
) -> Option<Few> {
    let all = profile.samples as f64;
    let before = (hot.functions.clone(), flows.clone());
    // What cannot be counted keeps its row, with the reason.
    let is_own = |one: &Hot| {
        one.share * all >= SAMPLES - 0.5 || one.gap.is_some() || !one.path.is_absolute()
    };
    let own = before.0.iter().cloned().zip(before.1.iter().cloned());
    (hot.functions, *flows) = own.filter(|(one, _)| is_own(one)).unzip();
    let place = |one: &Hot| (one.path.clone(), one.range.start);
    let mut known: BTreeSet<(PathBuf, u64)> = hot.functions.iter().map(place).collect();
    let mut seen = Vec::new();
    for (number, of) in profile.functions.iter().enumerate() {
        let path = PathBuf::from(&of.path);
        let is_file = of.gap.is_none() && path.is_absolute() && !is_kernel(of);
        if is_file && of.share > 0.0 && known.insert((path, of.start)) {
            let bytes = of.end.saturating_sub(of.start) as f64;
            let seconds = EACH_BYTE * bytes + EXECUTED * hot.seconds * of.share;
            seen.push(Candidate { of: number, bytes, weight: of.share, seconds });
        }
    }
    let files = seen.iter().map(|one| PathBuf::from(&profile.functions[one.of].path)).collect();
    let unseen = unseen(files, &known);
    let bytes = bytes(&seen) + self::bytes(&unseen);
    let mut rng = Rng::with_seed(SEED);
    let most = (MOST * hot.seconds).max(LEAST_SECONDS);
    let seen = drawn(&mut rng, seen, (1.0 - UNSEEN) * most);
    let left = most - seen.iter().map(|(one, _)| one.seconds).sum::<f64>();
    let unseen = drawn(&mut rng, unseen, left.max(UNSEEN * most));
    let counted = seen.iter().map(|(one, _)| one.bytes).sum::<f64>()
        + unseen.iter().map(|(one, _)| one.bytes).sum::<f64>();
    let mut few = Few {
        functions: Vec::new(),
        flows: Vec::new(),
        times: Vec::new(),
        counted: counted / bytes.max(1.0),
    };
    for (one, times) in seen {
        few.functions.push(Hot::of(profile, one.of));
        few.flows.push(profile.flow(one.of).ok());
        few.times.push(times);
    }
    for (one, times) in unseen {
        few.functions.push(one.of);
        few.times.push(times);
    }
    if few.flows.is_empty() {
        (hot.functions, *flows) = before;
        return None;
    }
    Some(few)
}

/// The functions without samples in files.
fn unseen(files: BTreeSet<PathBuf>, known: &BTreeSet<(PathBuf, u64)>) -> Vec<Candidate<Hot>> {
    let mut all = Vec::new();
    for path in files {
        // A file of which they are not known has those with samples only.
        for of in probe::facts::functions(&path).unwrap_or_default() {
            let path = path.clone();
            if !known.contains(&(path.clone(), of.range.start)) {
                let (name, range) = (of.name.unwrap_or_default(), of.range);
                let bytes = (range.end - range.start) as f64;
                let of = Hot { path, name, range, share: 0.0, gap: None, blocks: Vec::new() };
                all.push(Candidate { of, bytes, weight: 1.0, seconds: EACH_BYTE * bytes });
            }
        }
    }
    all
}

/// A function that may be counted.
#[derive(Debug, Clone, PartialEq)]
struct Candidate<T> {
    of: T,
    bytes: f64,
    /// It is drawn in proportion to this.
    weight: f64,
    /// Time that counting it takes.
    seconds: f64,
}

fn bytes<T>(of: &[Candidate<T>]) -> f64 {
    of.iter().map(|one| one.bytes).sum()
}

/// As many as take no longer than `most` seconds, one at least, at random by their weights; and how many each stands
/// for, so that they weigh as much as all. (Priority sampling: Duffield, Lund and Thorup, 2007.)
fn drawn<T>(rng: &mut Rng, all: Vec<Candidate<T>>, most: f64) -> Vec<(Candidate<T>, f64)> {
    let sum: f64 = all.iter().map(|one| one.weight).sum();
    let mut ranked: Vec<(f64, Candidate<T>)> =
        all.into_iter().map(|one| (one.weight / (1.0 - rng.f64()), one)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut seconds = 0.0;
    let fits = |(_, one): &&(f64, Candidate<T>)| {
        seconds += one.seconds;
        seconds <= most
    };
    let number = ranked.iter().take_while(fits).count().max(1);
    // Each stands for at least as much as the first that is left out was drawn with.
    let least = ranked.get(number).map_or(0.0, |(rank, _)| *rank);
    ranked.truncate(number);
    let held: f64 = ranked.iter().map(|(_, one)| one.weight.max(least)).sum();
    let times = |one: &Candidate<T>| one.weight.max(least) / one.weight * (sum / held);
    ranked.into_iter().map(|(_, one)| (times(&one), one)).map(|(times, one)| (one, times)).collect()
}

/// The counts without those of the functions with few samples, of which the evidence has sums.
pub(super) fn without(few: &Count, hot: &Hottest) -> Count {
    let mut kept = few.clone();
    let is_hot = |module: &str, at: u64| hot.has(module, at);
    kept.blocks.retain(|row| is_hot(&row.module, row.start.0));
    kept.edges.retain(|row| is_hot(&row.module, row.from.0));
    kept.branches.retain(|row| is_hot(&row.module, row.address.0));
    kept.loops.retain(|row| is_hot(&row.module, row.head.0));
    kept.loads.retain(|row| is_hot(&row.module, row.address.0));
    kept.stores.retain(|row| is_hot(&row.module, row.address.0));
    kept.refused.retain(|row| is_hot(&row.module, row.start.0));
    if let Some(rows) = &mut kept.hot {
        rows.functions.truncate(hot.functions.len());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: five of ten alike stand for two each.
    #[test]
    fn a_part_of_much_code_stands_for_all_of_it() {
        let one = |of: u64| Candidate { of, bytes: 100.0, weight: 1.0, seconds: 1.0 };
        let all: Vec<Candidate<u64>> = (0..10).map(one).collect();
        let of = |most| drawn(&mut Rng::with_seed(SEED), all.clone(), most);
        let half = of(5.0);
        assert_eq!(half.len(), 5);
        assert!(half.iter().all(|(_, times)| (*times - 2.0).abs() < 1e-9), "{half:?}");
        assert_eq!(of(5.0), half, "the same again");
        assert!(of(10.0).iter().all(|(_, times)| (*times - 1.0).abs() < 1e-9));
        assert_eq!(of(0.1).len(), 1, "one at least");
        assert!(drawn::<u64>(&mut Rng::with_seed(SEED), Vec::new(), 1.0).is_empty());
    }

    /// 1,000 functions with 1 to 4 samples, which run ten times as long: a third of them tells the sum of that.
    #[test]
    fn functions_are_drawn_by_their_samples() {
        let one = |of: u32| {
            let weight = f64::from(1 + of % 4);
            Candidate { of: 10.0 * weight, bytes: 1.0, weight, seconds: 1.0 }
        };
        let all: Vec<Candidate<f64>> = (0..1000).map(one).collect();
        let (sum, some) = (25_000.0, drawn(&mut Rng::with_seed(SEED), all, 300.0));
        let found: f64 = some.iter().map(|(one, times)| one.of * times).sum();
        assert_eq!(some.len(), 300);
        assert!((found - sum).abs() < 1e-6 * sum, "{found}");
        let mean = some.iter().map(|(one, _)| one.weight).sum::<f64>() / 300.0;
        assert!((2.8..3.2).contains(&mean), "{mean}: 2.5 if drawn alike, 3 by weight");
    }
}
