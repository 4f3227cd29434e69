//! Latencies of known levels, also drawn at random.

use super::{Calibration, Histogram, Level, Timed, granularity, limits, shares};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Fenced loads of known levels on a Zen 5 (virtual machine, counter of 2.6 GHz in steps of 26), 10,000
/// each; those of the third cache with 40 % of memory in between, as the cache is shared with others.
fn zen5() -> Calibration {
    let of = |all: &[(u32, u64)]| all.iter().copied().collect::<Histogram>();
    let near = of(&[(52, 9_200), (78, 800)]);
    let timed = |all: &[(u32, u64)]| Timed { near: near.clone(), load: of(all) };
    let levels = vec![
        (Level::Cache(1), timed(&[(52, 9_200), (78, 800)])),
        (Level::Cache(2), timed(&[(52, 6_500), (78, 3_500)])),
        (
            Level::Cache(3),
            timed(&[(78, 3_600), (104, 2_300), (130, 100), (364, 2_000), (390, 2_000)]),
        ),
        (Level::Memory, timed(&[(338, 1_000), (364, 4_000), (390, 4_000), (442, 1_000)])),
    ];
    Calibration { step: 26, levels }
}

/// A sample of 100 per percent with these shares of the levels.
fn mixed(percent: [u64; 4]) -> Timed {
    let levels = zen5().levels;
    let part = |number: usize| {
        let hits =
            if number == 3 { levels[3].1.load.clone() } else { levels[number].1.load.below(300) };
        let total = hits.total();
        let scaled = move |(ticks, n): (u32, u64)| (ticks, n * percent[number] * 100 / total);
        hits.iter().map(scaled).collect::<Vec<_>>()
    };
    Timed { near: levels[0].1.near.clone(), load: (0..4).flat_map(part).collect() }
}

#[test]
fn the_step_of_the_counter_is_what_all_latencies_are_multiples_of() {
    let all = zen5();
    assert_eq!(granularity(all.levels.iter().flat_map(|(_, one)| one.all())), 26);
    assert_eq!(granularity([&Histogram::default()]), 0);
}

#[test]
fn memory_among_the_hits_of_a_cache_is_left_out() {
    let found = limits(&zen5()).unwrap();
    assert!((131..338).contains(&found.memory), "{found:?}");
    let means: Vec<f64> = found.means().map(|(_, mean)| mean).collect();
    assert_eq!(means.len(), 3);
    // (3600 × 78 + 2300 × 104 + 100 × 130) / 6000 − (9200 × 52 + 800 × 78) / 10000
    assert!((means[2] - 34.753).abs() < 0.001, "{means:?}");
    assert_eq!(found.assumed, []);
}

#[test]
fn without_memory_nothing_is_known() {
    let mut none = zen5();
    none.levels.pop();
    assert!(shares(&mixed([100, 0, 0, 0]), &[none]).is_err());
    assert!(shares(&Timed::default(), &[zen5()]).is_err());
}

/// Latencies are 5 ticks longer in the program: also those of the word in the first cache.
#[test]
fn what_differs_between_two_places_is_taken_out() {
    let of = |all: &[(u32, u64)]| all.iter().copied().collect::<Histogram>();
    // 5/26 of those of a step are seen as the next one.
    let load = of(&[(52, 7_430), (78, 2_416), (104, 154)]);
    let found = shares(&Timed { near: load.clone(), load }, &[zen5()]).unwrap();
    assert!(found[0].share > 0.95, "{found:?}");
}

/// The third cache is used by others: no hits were seen.
#[test]
fn hits_of_a_cache_that_could_not_be_measured_lie_between() {
    let mut busy = zen5();
    busy.levels[2].1.load = busy.levels[3].1.load.clone();
    let limits = limits(&busy).unwrap();
    assert_eq!(limits.assumed, [Level::Cache(3)]);
    let of = |all: &[(u32, u64)]| all.iter().copied().collect::<Histogram>();
    let load = of(&[(52, 4_600), (78, 400), (104, 2_500), (364, 2_500)]);
    let near = busy.levels[0].1.near.clone();
    let found = shares(&Timed { near, load }, &[busy]).unwrap();
    let rounded: Vec<f64> = found.iter().map(|one| (one.share * 20.0).round() / 20.0).collect();
    assert_eq!(rounded, [0.5, 0.0, 0.25, 0.25], "{found:?}");
}

proptest! {
    // A fixed seed: how close shares are has no sharp limit.
    #![proptest_config(ProptestConfig { cases: 48, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// A mixture of the calibrated histograms is taken apart again, and its weights lie within the
    /// intervals but for what whole counts round.
    #[test]
    fn mixtures_are_taken_apart(a in 0_u64..=100, b in 0_u64..=100, c in 0_u64..=100) {
        let mut cuts = [a, b, c];
        cuts.sort_unstable();
        let parts = [cuts[0], cuts[1] - cuts[0], cuts[2] - cuts[1], 100 - cuts[2]];
        let found = shares(&mixed(parts), &[zen5(), zen5()]).unwrap();
        for (one, part) in found.iter().zip(parts) {
            let expected = part as f64 / 100.0;
            prop_assert!(one.low - 0.02 <= expected && expected <= one.high + 0.02);
            prop_assert!(0.0 <= one.low && one.low <= one.share && one.share <= one.high);
        }
    }
}

/// Shares of mixtures, on average and at most. By 5.003 points, 84 + 21 + 21 was once off: the first two caches differ
/// by a fifth of a step of the counter.
#[test]
fn shares_of_mixtures_are_close() {
    let all =
        (0..=10).flat_map(|a| (0..=10 - a).map(move |b| [10 * a, 10 * b, 5 * (10 - a - b), 0]));
    let all = all.map(|[a, b, c, _]| [a, b, c, 100 - a - b - c]).chain([[21, 0, 63, 16]]);
    let mut off = Vec::new();
    for parts in all {
        let found = shares(&mixed(parts), &[zen5(), zen5()]).unwrap();
        off.extend(
            found.iter().zip(parts).map(|(one, part)| (one.share - part as f64 / 100.0).abs()),
        );
    }
    let most = off.iter().copied().fold(0.0, f64::max);
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    assert!(most < 0.08 && mean < 0.02, "{most} {mean}");
}
