//! Finds sizes and latencies of caches from a walk through growing memory.

use super::times::{Plateau, Times, agreed, plateaus};
use std::collections::BTreeMap;
use tma::measured::{Fact, Kind, Known, Open};

/// Least share of a flushed line's time of a plateau that is memory.
const MEMORY: f64 = 0.7;
/// Least ratio of the time at the walk's end to the last cache's for a walk beyond that cache.
const BEYOND: f64 = 1.25;
/// Error of sizes: a step of the walk, and a step by which caches end early, as others use some
/// lines.
const STEP: f64 = 0.25;
/// A cache that ends within this ratio of the reach of translations may only seem to end.
const END: f64 = 1.5;
/// Least error of latencies, since loads of a plateau may also hit the cache before.
const LATENCY: f64 = 0.05;
/// Permitted difference of repetitions: of sizes (two steps of the walk) and of latencies, as
/// shares.
const SIZES: f64 = 0.45;
const LATENCIES: f64 = 0.15;

const SIZE: [Kind; 3] = [Kind::L1Size, Kind::L2Size, Kind::L3Size];
const TIME: [Kind; 3] = [Kind::L1Latency, Kind::L2Latency, Kind::L3Latency];

/// The caches of one repetition, and the cycles of a load at the end of the walk, if in memory.
struct Levels {
    caches: Vec<Plateau>,
    /// Whether the walk goes beyond the last cache.
    goes_beyond: bool,
    memory: Option<f64>,
}

fn levels(times: &Times) -> Levels {
    let mut caches = plateaus(&times.walk);
    let end = times.walk.last().map_or(0.0, |last| last.1);
    let is_memory = |cycles: f64| times.flushed.is_some_and(|flushed| cycles >= MEMORY * flushed);
    if caches.len() > 1 && caches.last().is_some_and(|last| is_memory(last.cycles)) {
        caches.pop();
    }
    let goes_beyond = caches.last().is_some_and(|last| end >= BEYOND * last.cycles);
    Levels { caches, goes_beyond, memory: Some(end).filter(|end| is_memory(*end)) }
}

/// The facts of caches and memory.
pub(super) fn facts(repeats: &[Times]) -> BTreeMap<Kind, Fact> {
    let mut found = BTreeMap::new();
    let all: Vec<_> = repeats.iter().filter(|times| !times.walk.is_empty()).map(levels).collect();
    // Contention only reduces it.
    let reach = repeats.iter().map(|times| times.reach).fold(0.0, f64::max);
    let huge = reach.is_infinite();
    for level in 0..SIZE.len() {
        let (size, time) = (SIZE[level], TIME[level]);
        let at: Vec<Plateau> =
            all.iter().filter_map(|one| one.caches.get(level).copied()).collect();
        if at.len() < all.len().div_ceil(2).max(1) {
            let open = match (all.is_empty(), huge) {
                (true, _) => Open::NoMemory,
                (_, false) => Open::SmallPages,
                (_, true) => Open::NoSuchCache,
            };
            found.insert(size, Fact::open(open.clone()));
            found.insert(time, Fact::open(open));
            continue;
        }
        // Beyond the reach a plateau may be due to translations; one that ends there may end due to
        // them.
        let (hidden, cut) = (at[0].from > reach, at[0].to * END > reach);
        if level > 0 && hidden {
            found.insert(size, Fact::open(Open::SmallPages));
            found.insert(time, Fact::open(Open::SmallPages));
            continue;
        }
        // A plateau that ends with the walk may continue.
        let ends = all.iter().any(|one| one.caches.len() > level + 1 || one.goes_beyond);
        let fact = match (ends, cut) {
            (_, true) => Fact::open(Open::SmallPages),
            (false, _) => Fact::open(Open::NoStep { up_to: at[0].to }),
            (true, false) => sizes(&at),
        };
        found.insert(size, fact);
        found.insert(time, latencies(&at.iter().map(|p| (p.cycles, p.spread)).collect::<Vec<_>>()));
    }
    found.insert(Kind::MemoryLatency, memory(repeats, &all, huge));
    found
}

fn sizes(at: &[Plateau]) -> Fact {
    let sizes: Vec<f64> = at.iter().map(|p| p.to).collect();
    match agreed(&sizes, SIZES) {
        // Contention only reduces a shared cache.
        Ok(same) => Fact::Known(Known {
            value: same.most,
            error: STEP * same.most + (same.most - same.least),
            how: "where loads in random order begin to take longer".to_owned(),
        }),
        Err(open) => Fact::open(open),
    }
}

fn latencies(cycles: &[(f64, f64)]) -> Fact {
    match agreed(&cycles.iter().map(|c| c.0).collect::<Vec<_>>(), LATENCIES) {
        Ok(same) => {
            let spread =
                cycles.iter().filter(|c| c.0 == same.least).map(|c| c.1).fold(0.0, f64::max);
            Fact::Known(Known {
                value: same.least,
                error: (LATENCY * same.least).max(spread / 2.0).max(same.most - same.least),
                how: "loads that each wait for the one before".to_owned(),
            })
        }
        Err(open) => Fact::open(open),
    }
}

/// Latency of memory, from flushed lines and from the end of the walk: their difference is part of
/// the error (a walk over much memory also misses the last cache's neighbours and more
/// translations).
fn memory(repeats: &[Times], all: &[Levels], huge: bool) -> Fact {
    let flushed: Vec<f64> = repeats.iter().filter_map(|times| times.flushed).collect();
    let walked = all.iter().filter_map(|one| one.memory).min_by(f64::total_cmp);
    match agreed(&flushed, LATENCIES) {
        Ok(same) => {
            let walked = walked.filter(|_| huge);
            let apart = walked.map_or(0.0, |walked| (walked - same.least).abs());
            let how = match walked {
                Some(walked) => {
                    format!("lines that were flushed; {walked:.0} at the end of the walk")
                }
                None => "lines that were flushed".to_owned(),
            };
            let error = (LATENCY * same.least).max(same.most - same.least).max(apart);
            Fact::Known(Known { value: same.least, error, how })
        }
        Err(open) => Fact::open(open),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Model of a walk: cycles of a load in random order with caches of these sizes and latencies,
    /// each hit in proportion to its share of the memory.
    pub fn modelled(caches: &[(f64, f64)], memory: f64) -> Vec<(f64, f64)> {
        let sizes = (0..=64).map(|n| 4096.0 * (f64::from(n) / 4.0).exp2());
        let cycles = |bytes: f64| {
            let (mut sum, mut held) = (0.0, 0.0);
            for (size, cycles) in caches {
                let share = (size / bytes).min(1.0);
                sum += (share - held).max(0.0) * cycles;
                held = share.max(held);
            }
            sum + (1.0 - held) * memory
        };
        sizes.map(|bytes| (bytes, cycles(bytes))).collect()
    }

    fn of(walk: Vec<(f64, f64)>, flushed: f64, reach: f64) -> BTreeMap<Kind, Fact> {
        let times = Times { walk, flushed: Some(flushed), reach, ..Times::default() };
        facts(&[times.clone(), times.clone(), times])
    }

    fn value(facts: &BTreeMap<Kind, Fact>, kind: Kind) -> Option<f64> {
        match &facts[&kind] {
            Fact::Known(known) => Some(known.value),
            Fact::Open { .. } => None,
        }
    }

    fn is_near(found: Option<f64>, truth: f64, share: f64) -> bool {
        found.is_some_and(|found| (found / truth - 1.0).abs() <= share)
    }

    const K: f64 = 1024.0;

    /// Sizes and latencies as the vendors' manuals state them: Zen 3 (32 KiB, 4 cycles; 512 KiB, 12; 32 MiB, 46), Golden
    /// Cove's server (48 KiB, 5; 2 MiB, 14; 105 MiB, about 70), and one without a third cache.
    #[test]
    fn caches_of_other_shapes_are_found() {
        let shapes: [&[(f64, f64)]; 3] = [
            &[(32.0 * K, 4.0), (512.0 * K, 12.0), (32.0 * K * K, 46.0)],
            &[(48.0 * K, 5.0), (2.0 * K * K, 14.0), (56.0 * K * K, 70.0)],
            &[(64.0 * K, 3.0), (8.0 * K * K, 17.0)],
        ];
        for caches in shapes {
            let found = of(modelled(caches, 400.0), 380.0, f64::INFINITY);
            for (level, (size, cycles)) in caches.iter().enumerate() {
                assert!(
                    is_near(value(&found, SIZE[level]), *size, 0.5),
                    "{:?} of {size}",
                    found[&SIZE[level]]
                );
                assert!(
                    is_near(value(&found, TIME[level]), *cycles, 0.2),
                    "{:?} of {cycles}",
                    found[&TIME[level]]
                );
            }
            assert!(is_near(value(&found, Kind::MemoryLatency), 380.0, 0.01));
            if caches.len() == 2 {
                assert_eq!(found[&Kind::L3Size], Fact::open(Open::NoSuchCache));
            }
        }
    }

    #[test]
    fn what_translations_hide_is_open_and_the_first_cache_is_not() {
        // 64 translations: the second cache's latency shows before them, its size does not.
        let walk = modelled(&[(32.0 * K, 4.0), (512.0 * K, 12.0)], 400.0);
        let found = of(walk, 380.0, 256.0 * K);
        assert!(value(&found, Kind::L1Size).is_some());
        assert!(is_near(value(&found, Kind::L2Latency), 12.0, 0.2));
        assert_eq!(found[&Kind::L2Size], Fact::open(Open::SmallPages));
        assert_eq!(found[&Kind::L3Latency], Fact::open(Open::SmallPages));
    }

    #[test]
    fn repetitions_that_contradict_each_other_leave_a_fact_open() {
        let of = |size: f64| Times {
            walk: modelled(&[(size * K, 4.0), (8.0 * K * K, 14.0)], 400.0),
            flushed: Some(380.0),
            reach: f64::INFINITY,
            ..Times::default()
        };
        let found = facts(&[of(16.0), of(64.0), of(256.0)]);
        assert!(matches!(found[&Kind::L1Size], Fact::Open { open: Open::Disagree { .. } }));
    }
}
