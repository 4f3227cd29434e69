//! Decides the facts that follow from the times.

use super::caches;
use super::times::{Curve, Rates, Repetitions, Same, Times, agreed, halves, lower_envelope, step};
use std::collections::BTreeMap;
use tma::measured::{Fact, Facts, Kind, Known, Open};

/// Permitted difference of rates, of lengths of code, and of distances of misses, as shares.
const RATES: f64 = 0.05;
const LENGTHS: f64 = 0.15;
const DISTANCES: f64 = 0.08;
/// Least slowdown of code that leaves a cache, and the ratio of lengths within which it happens.
const SLOWER: f64 = 1.12;
const STEEP: f64 = 1.3;
/// End of a step, as a multiple of its begin: with random replacement few hits are left then.
const ENDED: f64 = 2.2;
/// Least added share of two misses in sequence instead of together; ideally 1.
const APART: f64 = 0.35;
/// Ratio of distances within which a step of misses happens.
const SHARP: f64 = 1.35;
/// Bytes per instruction of short and of long code.
const BYTES: (f64, f64) = (4.0, 6.0);

/// The facts that the times show. `nops`: whether nops share slots by the self-test, in which case
/// they do not show the reorder buffer.
pub fn facts(repetitions: &Repetitions, nops: Option<bool>) -> Facts {
    let all = &halves(&repetitions.repeats);
    let mut found: BTreeMap<Kind, Fact> = caches::facts(all);
    found.insert(Kind::Loads, rate(all, |rates| rates.load));
    found.insert(Kind::Stores, rate(all, |rates| rates.store));
    found.insert(Kind::Forwarding, forwarding(all));
    let (cache, decoded) = code(all);
    found.insert(Kind::OpCache, cache);
    found.insert(Kind::Decoded, decoded);
    found.insert(Kind::ReorderBuffer, buffer(all, nops));
    if let Some(open) = &repetitions.no_memory {
        let fact = || Fact::open(open.clone());
        found.insert(Kind::ReorderBuffer, fact());
    }
    Facts(found)
}

/// The best rate per cycle of repetitions that agree.
fn rate(all: &[Times], of: fn(&Rates) -> Option<f64>) -> Fact {
    let cycles: Vec<f64> = all.iter().filter_map(|times| of(&times.rates)).collect();
    match agreed(&cycles, RATES) {
        Ok(same) => {
            let value = 1.0 / same.least;
            let error = (value - 1.0 / same.most).max(RATES / 2.0 * value);
            Fact::Known(Known { value, error, how: "independent ones in a loop".to_owned() })
        }
        Err(open) => Fact::open(open),
    }
}

/// Latency of a store and a load of half of it; a load of all of it may be faster, if the core
/// takes the stored register.
fn forwarding(all: &[Times]) -> Fact {
    let rates_of = |get: fn(&Rates) -> Option<f64>| -> Vec<f64> {
        all.iter().filter_map(|times| get(&times.rates)).collect()
    };
    let named = agreed(&rates_of(|rates| rates.slot), RATES);
    match agreed(&rates_of(|rates| rates.half), 2.0 * RATES) {
        Ok(same) => {
            let how = match named {
                Ok(named) => {
                    format!("a load of half of what was stored; {:.1} of all of it", named.least)
                }
                Err(_) => "a load of half of what was stored".to_owned(),
            };
            let error = (same.most - same.least).max(RATES * same.least);
            Fact::Known(Known { value: same.least, error, how })
        }
        Err(open) => Fact::open(open),
    }
}

/// Instructions before a step of slowdown, and cycles per instruction after it. A slope is no limit
/// of a cache.
fn fast(curve: &Curve) -> Option<(f64, f64)> {
    let all = lower_envelope(curve);
    let steps = |from: &usize| {
        let near = |p: &&(f64, f64)| p.0 <= STEEP * all[*from].0;
        let end = all[*from..].iter().take_while(near).last();
        end.is_some_and(|end| end.1 > SLOWER * all[*from].1)
    };
    let from = (0..all.len()).find(steps)?;
    let last = all.iter().rposition(|p| p.1 <= SLOWER * all[from].1)?;
    let next = all.get(last + 1)?;
    // The speed after the end of the step.
    let beyond = all.iter().rfind(|p| p.0 <= ENDED * all[last].0).unwrap_or(next);
    Some((all[last].0, beyond.1.max(next.1)))
}

/// The op cache, which ends at the same number of instructions for short and long code; the
/// instruction cache ends at the same number of bytes.
fn code(all: &[Times]) -> (Fact, Fact) {
    let fast_code = |get: fn(&Times) -> &Curve| -> Vec<(f64, f64)> {
        all.iter().filter_map(|times| fast(get(times))).collect()
    };
    let (short, long) = (fast_code(|times| &times.short_code), fast_code(|times| &times.long_code));
    let lengths = |all: &[(f64, f64)]| all.iter().map(|one| one.0).collect::<Vec<_>>();
    let up_to = || {
        let last = all.iter().filter_map(|times| times.short_code.last()).map(|p| p.0);
        Open::NoStep { up_to: last.fold(0.0, f64::max) }
    };
    if short.is_empty() {
        return (Fact::open(up_to()), Fact::open(up_to()));
    }
    let (short_ends, long_ends) =
        (agreed(&lengths(&short), LENGTHS), agreed(&lengths(&long), LENGTHS));
    let cache = match (&short_ends, &long_ends) {
        (Ok(short), Ok(long)) => {
            let instructions = (short.most / long.most).ln().abs();
            let bytes = (short.most * BYTES.0 / (long.most * BYTES.1)).ln().abs();
            if bytes < instructions {
                return (Fact::open(Open::NoStep { up_to: short.most }), Fact::open(up_to()));
            }
            // One of the lengths may leave room in lines of the op cache.
            let value = short.most.max(long.most);
            let how = format!(
                "loops of instructions of 4 bytes ({:.0}) and of 6 bytes ({:.0})",
                short.most, long.most
            );
            Fact::Known(Known { value, error: LENGTHS * value, how })
        }
        (Err(open), _) | (_, Err(open)) => Fact::open(open.clone()),
    };
    let beyond: Vec<f64> = short.iter().map(|one| one.1).collect();
    let decoded = match (&cache, agreed(&beyond, LENGTHS)) {
        (Fact::Open { open }, _) => Fact::open(open.clone()),
        (_, Err(open)) => Fact::open(open),
        (_, Ok(same)) => {
            let value = 1.0 / same.least;
            let error = (value - 1.0 / same.most).max(RATES * value);
            let how = "a longer loop of instructions of 4 bytes".to_owned();
            Fact::Known(Known { value, error, how })
        }
    };
    (cache, decoded)
}

/// The reorder buffer: the most instructions of any kind between two misses that still overlap,
/// since each kind may also run out of other resources. Nops that share entries do not count.
fn buffer(all: &[Times], nops: Option<bool>) -> Fact {
    let kinds = ["nops", "additions", "additions and vector operations"];
    let skip = usize::from(nops == Some(true));
    let mut open = Open::NotMeasured;
    let mut known: Vec<(Same, &str)> = Vec::new();
    for (kind, name) in kinds.iter().enumerate().skip(skip) {
        let at = |times: &Times| step(&times.windows[kind], SHARP, APART);
        let steps: Vec<f64> = all.iter().filter_map(at).collect();
        match agreed(&steps, DISTANCES) {
            Ok(same) => known.push((same, name)),
            Err(Open::NotMeasured) => {
                let last = all.iter().filter_map(|times| times.windows[kind].last()).map(|p| p.0);
                open = Open::NoStep { up_to: last.fold(0.0, f64::max) };
            }
            Err(why) => open = why,
        }
    }
    let Some((same, name)) = known.iter().max_by(|a, b| a.0.most.total_cmp(&b.0.most)) else {
        return Fact::open(open);
    };
    let others: Vec<String> = known
        .iter()
        .filter(|one| one.1 != *name)
        .map(|(same, name)| format!("{:.0} {name}", same.most))
        .collect();
    let mut how = format!("{name} between two misses that wait together");
    if !others.is_empty() {
        how += &format!("; {}", others.join(", "));
    }
    let error = (same.most - same.least).max(DISTANCES / 2.0 * same.most);
    Fact::Known(Known { value: same.most, error, how })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two misses of 400 cycles with instructions in between, of which `width` are issued per
    /// cycle, in a buffer of `buffer` entries.
    fn window(buffer: f64, width: f64) -> Curve {
        let sizes =
            std::iter::successors(Some(24.0_f64), |n| Some(n + (n / 32.0).floor().max(4.0)));
        let cycles =
            |n: f64| if n < buffer { 400.0_f64.max(2.0 * n / width) } else { 800.0 + n / width };
        sizes.take_while(|n| *n <= 1200.0).map(|n| (n, cycles(n))).collect()
    }

    /// Cycles per instruction by their number: `limits` are numbers held and instructions per cycle
    /// up to them.
    fn code(limits: &[(f64, f64)]) -> Curve {
        let sizes = (0..=42).map(|n| (192.0 * (f64::from(n) / 6.0).exp2() / 8.0).floor() * 8.0);
        // A part of a longer loop still hits, as with random replacement.
        let rate = |n: f64| {
            limits.iter().find(|limit| n <= limit.0).or(limits.last()).map_or(1.0, |limit| limit.1)
        };
        sizes.map(|n| (n, 1.0 / rate(n))).collect()
    }

    fn of(times: Times, nops: Option<bool>) -> Facts {
        facts(&Repetitions { repeats: vec![times; 4], ..Repetitions::default() }, nops)
    }

    fn value(facts: &Facts, kind: Kind) -> Option<f64> {
        facts.known(kind).map(|known| known.value)
    }

    /// Entries as the vendors state them: Zen 3 256, Golden Cove 512, Skylake 224, Zen 4 320. Additions run out of
    /// registers before, and nops that share entries show more than there are.
    #[test]
    fn the_reorder_buffer_is_where_misses_no_longer_wait_together() {
        for (entries, width) in [(256.0, 6.0), (512.0, 6.0), (224.0, 4.0)] {
            let windows =
                [window(entries, width), window(0.6 * entries, width), window(entries, width)];
            let found = of(Times { windows, ..Times::default() }, Some(false));
            let known = found.known(Kind::ReorderBuffer).unwrap();
            assert!((known.value / entries - 1.0).abs() < 0.06, "{known:?} of {entries}");
            assert!(known.how.contains("additions"), "{}", known.how);
        }
        let windows = [window(640.0, 6.0), window(190.0, 6.0), window(320.0, 6.0)];
        let found = of(Times { windows, ..Times::default() }, Some(true));
        assert!((value(&found, Kind::ReorderBuffer).unwrap() / 320.0 - 1.0).abs() < 0.06);
        let short = window(2000.0, 6.0);
        let windows = [short.clone(), short.clone(), short];
        let found = of(Times { windows, ..Times::default() }, None);
        assert!(matches!(found.get(Kind::ReorderBuffer), Fact::Open { open: Open::NoStep { .. } }));
    }

    /// Half of a Golden Cove's buffer is the other thread's while that runs. Where it ran during some repetitions, the
    /// others count; where it ran during all of one half, nothing is known.
    #[test]
    fn a_busy_sibling_halves_nothing_for_good() {
        let times = |entries: f64| {
            let windows = [window(entries, 6.0), window(entries, 6.0), window(entries, 6.0)];
            Times { windows, ..Times::default() }
        };
        let of = |all: [f64; 4]| {
            let repeats = all.map(times).to_vec();
            facts(&Repetitions { repeats, ..Repetitions::default() }, Some(false))
        };
        let some = of([256.0, 512.0, 512.0, 256.0]);
        assert!((value(&some, Kind::ReorderBuffer).unwrap() / 512.0 - 1.0).abs() < 0.06);
        let half = of([256.0, 512.0, 256.0, 512.0]);
        assert!(matches!(
            half.get(Kind::ReorderBuffer),
            Fact::Open { open: Open::Disagree { .. } }
        ));
    }

    /// Zen 3: 4,096 ops, 6 a cycle, then four that it decodes. Skylake: 1,536 in lines of six for 32 bytes of code, which
    /// eight of 4 bytes fill by two thirds and five of 6 bytes by five sixths. A core without an op cache slows only where
    /// 64 KiB of code end, however long its instructions are.
    #[test]
    fn an_op_cache_ends_at_instructions_and_an_instruction_cache_at_bytes() {
        let zen = Times {
            short_code: code(&[(4096.0, 6.0), (8192.0, 4.0), (99e9, 2.5)]),
            long_code: code(&[(4096.0, 5.5), (99e9, 2.0)]),
            ..Times::default()
        };
        let found = of(zen, None);
        assert!((value(&found, Kind::OpCache).unwrap() / 4096.0 - 1.0).abs() < 0.15);
        let skylake = Times {
            short_code: code(&[(1024.0, 4.0), (8192.0, 3.0), (99e9, 2.0)]),
            long_code: code(&[(1365.0, 4.0), (5461.0, 2.0), (99e9, 1.0)]),
            ..Times::default()
        };
        let found = of(skylake, None);
        let held = value(&found, Kind::OpCache).unwrap();
        assert!((1024.0..=1536.0).contains(&held), "{held}");
        assert!((value(&found, Kind::Decoded).unwrap() / 3.0 - 1.0).abs() < 0.05);
        let none = Times {
            short_code: code(&[(16384.0, 5.0), (99e9, 2.0)]),
            long_code: code(&[(10922.0, 4.0), (99e9, 1.0)]),
            ..Times::default()
        };
        assert!(matches!(
            of(none, None).get(Kind::OpCache),
            Fact::Open { open: Open::NoStep { .. } }
        ));
    }

    /// Recorded on a Zen 3 guest with other guests on its host: cycles of a load of three repetitions.
    #[test]
    fn rates_are_the_best_of_repetitions_that_agree() {
        let of = |all: &[f64]| {
            let times = |load: &f64| Times {
                rates: Rates { load: Some(*load), ..Rates::default() },
                ..Times::default()
            };
            let repeats = all.iter().map(times).collect();
            facts(&Repetitions { repeats, ..Repetitions::default() }, None)
        };
        let best = of(&[0.3476, 0.5243, 0.5243, 0.3359]);
        assert!((value(&best, Kind::Loads).unwrap() - 1.0 / 0.3359).abs() < 0.01);
        assert!(matches!(
            of(&[0.3476, 0.5243, 0.3795]).get(Kind::Loads),
            Fact::Open { open: Open::Disagree { .. } }
        ));
        assert_eq!(
            of(&[0.3476]).get(Kind::Loads),
            Fact::open(Open::Disagree { least: 0.3476, most: 0.3476 })
        );
    }

    /// Instructions of 4 bytes a cycle, recorded on a Zen 3: its op cache holds 4,096 (AMD, optimization guide for family
    /// 19h), and it decodes four a cycle.
    #[test]
    fn code_of_four_bytes_recorded_on_a_zen_3() {
        let rates = [
            (192.0, 5.88),
            (384.0, 5.94),
            (768.0, 5.94),
            (1536.0, 5.89),
            (2168.0, 5.83),
            (3072.0, 5.71),
            (3448.0, 5.66),
            (3864.0, 5.58),
            (4344.0, 4.7),
            (4872.0, 4.6),
            (6144.0, 4.52),
            (7736.0, 4.32),
            (8688.0, 4.07),
            (12288.0, 4.03),
            (24576.0, 4.03),
        ];
        let curve: Curve = rates.iter().map(|(n, rate)| (*n, 1.0 / rate)).collect();
        let (fast, beyond) = fast(&curve).unwrap();
        assert_eq!(fast, 3864.0);
        assert!((1.0 / beyond - 4.32).abs() < 0.01, "{beyond}");
    }
}
