//! Instructions a cycle: the best that repeats. Contention only slows, so a narrow width needs more evidence than a wide one.

use super::questions::Question::Mix;
use super::times::{SAME, Times};
use crate::clock::mixes::MIXES;
use tma::self_test::{Open, Seen, Signs};

/// Share of its table's width that an uncontended core reaches at least: contention takes more.
const SHORT: f64 = 0.93;
/// Share of the pipeline's width that a measured rate reaches at most, by the clock's errors.
const ABOVE: f64 = 1.04;
/// Attempts that must agree to overrule the table, or without a table.
pub const OVERRULE: u32 = 3;
/// Mixes this close to the fastest are as good; the first of them is taken.
const AS_GOOD: f64 = 0.99;
/// Plausible width limit: no known x86 core sustains as much.
const MOST: f64 = 16.0;

/// Facts to judge the width by.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    /// The width by the table of this core; none without one, or with that of another processor.
    pub stated: Option<u32>,
    /// Processors that the test may use.
    pub cpus: usize,
}

/// A width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Width {
    /// The name of the best mix.
    pub mix: &'static str,
    /// Its instructions a cycle.
    pub rate: f64,
    /// The standard error, where several attempts show one.
    pub error: Option<f64>,
}

/// The width, or why it is open.
pub fn of(times: &Times, asked: Asked) -> Result<Width, Open> {
    let all = rates(times);
    let (Some((mix, found)), Some(seen)) = (best(times), seen(times)) else {
        return Err(Open::NotAsked);
    };
    let like: Vec<f64> = all.iter().copied().filter(|r| (r / found - 1.0).abs() <= SAME).collect();
    let width = Width { mix: MIXES[mix].name, rate: found, error: error(&like) };
    if !(1.0..=MOST).contains(&found) {
        return Err(Open::Impossible { found, low: 1.0, high: MOST });
    }
    let contended = || -> bool {
        let disturbed = times.attempts.iter().filter(|a| a.signs.show_sharing()).count();
        4 * disturbed >= times.attempts.len().max(1)
    };
    let is_unknown = times.attempts.iter().all(|attempt| attempt.cpu.is_none());
    let is_everywhere = is_unknown || seen.cpus as usize >= asked.cpus.min(times.attempts.len());
    let repeats = seen.best >= OVERRULE;
    // Without a table, no width shows contention: attempts without signs of sharing must agree on it.
    let is_undisturbed = |i: &usize| {
        let attempt = &times.attempts[*i];
        let like = rate(times, *i).is_some_and(|rate| (rate / found - 1.0).abs() <= SAME);
        like && !attempt.signs.show_sharing()
    };
    let undisturbed = (0..times.attempts.len())
        .filter(is_undisturbed)
        .map(|i| u64::from(times.attempts[i].stands_for));
    let is_seen_undisturbed = undisturbed.sum::<u64>() >= u64::from(OVERRULE);
    match asked.stated.map(f64::from) {
        Some(stated) if found > ABOVE * stated => match repeats {
            true => Ok(width),
            false => Err(Open::Exceeds { found, stated, seen: seen.best }),
        },
        Some(stated) if found < SHORT * stated => {
            match (seen.is_own_limit(stated) && is_everywhere, contended()) {
                (true, false) => Ok(width),
                (_, true) => Err(Open::Contended(seen.signs)),
                (false, false) => Err(Open::Narrower { found, stated, seen: seen.best }),
            }
        }
        Some(_) => Ok(width),
        None if repeats && is_everywhere && is_seen_undisturbed => Ok(width),
        None if contended() => Err(Open::Contended(seen.signs)),
        None => {
            let low = all.iter().copied().fold(found, f64::min);
            Err(Open::Disagree { low, high: found })
        }
    }
}

/// The evidence for the width.
pub fn seen(times: &Times) -> Option<Seen> {
    let (_, most) = best(times)?;
    let each =
        || (0..times.attempts.len()).filter_map(|i| Some((rate(times, i)?, times.attempts[i])));
    let like = each().filter(|(rate, _)| (rate / most - 1.0).abs() <= SAME);
    let mut cpus: Vec<u32> = times.attempts.iter().filter_map(|a| a.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let most_of = |get: &dyn Fn(&Signs) -> Option<f64>| {
        times.attempts.iter().filter_map(|a| get(&a.signs)).reduce(f64::max)
    };
    Some(Seen {
        attempts: times.attempts.iter().map(|a| a.stands_for).sum(),
        best: like.map(|(_, attempt)| attempt.stands_for).sum(),
        cpus: cpus.len() as u32,
        fastest: most,
        slowest: each().map(|(rate, _)| rate).fold(most, f64::min),
        signs: Signs {
            switches: times.attempts.iter().filter_map(|a| a.signs.switches).max(),
            stolen: most_of(&|signs| signs.stolen),
            spread: most_of(&|signs| signs.spread),
        },
    })
}

/// Instructions a cycle in the best mix of an attempt.
pub fn rate(times: &Times, attempt: usize) -> Option<f64> {
    let one = |i| Some(Mix(i).instructions() as f64 / times.of(attempt, Mix(i))?);
    (0..MIXES.len()).filter_map(one).reduce(f64::max)
}

/// The best rate of each attempt.
fn rates(times: &Times) -> Vec<f64> {
    (0..times.attempts.len()).filter_map(|i| rate(times, i)).collect()
}

/// The best mix and its instructions a cycle.
pub fn best(times: &Times) -> Option<(usize, f64)> {
    let rates = || (0..MIXES.len()).filter_map(|i| Some((i, times.rate(Mix(i))?)));
    let most = rates().fold(0.0, |most, (_, rate)| rate.max(most));
    rates().find(|(_, rate)| *rate >= AS_GOOD * most)
}

/// The standard error of the mean of these.
fn error(like: &[f64]) -> Option<f64> {
    let (many, mean) = (like.len() as f64, crate::stats::mean(like));
    let squares: f64 = like.iter().map(|rate| (rate - mean).powi(2)).sum();
    (like.len() >= 3).then(|| (squares / (many - 1.0) / many).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::times::{Attempt, NewAttempt};
    use std::collections::BTreeMap;

    /// Attempts that did so many instructions a cycle, in turn on two processors.
    fn attempts(rates: &[f64], signs: Signs) -> Times {
        let mut times = Times::default();
        for (i, rate) in rates.iter().enumerate() {
            let cycles = Mix(0).instructions() as f64 / rate;
            let cycles = BTreeMap::from([(Mix(0).name(), cycles)]);
            let attempt = Attempt { cpu: Some(i as u32 % 2), signs, stands_for: 1 };
            times.add(NewAttempt { attempt, cycles }, |_, _| 0.0);
        }
        times
    }

    fn found(rates: &[f64], stated: Option<u32>) -> Result<f64, Open> {
        let undisturbed = Signs { switches: Some(0), stolen: Some(0.0), spread: Some(0.01) };
        of(&attempts(rates, undisturbed), Asked { stated, cpus: 2 }).map(|width| width.rate)
    }

    /// A Granite Rapids (6 a cycle) that shows the model of a Rocket Lake (5).
    #[test]
    fn faster_than_the_table_wins_if_it_repeats() {
        assert_eq!(found(&[5.9, 5.9, 5.9], Some(5)), Ok(5.9));
        let once = found(&[5.9], Some(5));
        assert!(matches!(once, Err(Open::Exceeds { seen: 1, .. })), "{once:?}");
        // One error of the clock among others is not seen at all.
        assert_eq!(found(&[5.0, 9.0, 5.0], Some(5)), Ok(5.0));
    }

    /// The core under contention: 3.9 a cycle once, or in most attempts.
    #[test]
    fn a_narrow_width_never_wins_by_being_seen_once() {
        for stated in [Some(5), Some(6)] {
            let once = found(&[3.9], stated);
            assert!(matches!(once, Err(Open::Narrower { seen: 1, .. })), "{once:?}");
        }
        assert!(matches!(found(&[3.9], None), Err(Open::Disagree { .. })));
        // The best that repeats, though most attempts were slower.
        assert_eq!(found(&[3.9, 3.9, 3.9, 3.9, 5.9, 3.9, 5.9, 5.9], None), Ok(5.9));
        assert_eq!(found(&[3.9, 3.9, 3.9, 3.9, 5.9, 3.9, 5.9, 5.9], Some(6)), Ok(5.9));
    }

    /// A core of 8 slots by its table that does 7 each time is believed after 16 attempts, unless there are signs
    /// of contention.
    #[test]
    fn a_core_s_own_limit_repeats_without_signs_of_sharing() {
        assert_eq!(found(&[7.0; 16], Some(8)), Ok(7.0));
        assert!(matches!(found(&[7.0; 15], Some(8)), Err(Open::Narrower { .. })));
        // A busy sibling thread takes about half.
        assert!(matches!(found(&[4.2; 16], Some(8)), Err(Open::Narrower { .. })));
        for signs in [
            Signs { switches: Some(2), ..Signs::default() },
            Signs { stolen: Some(0.1), ..Signs::default() },
            Signs { spread: Some(0.2), ..Signs::default() },
        ] {
            let shared = of(&attempts(&[7.0; 16], signs), Asked { stated: Some(8), cpus: 2 });
            assert_eq!(shared, Err(Open::Contended(signs)));
        }
    }

    #[test]
    fn a_width_that_no_core_has_is_open() {
        assert!(matches!(found(&[40.0; 3], None), Err(Open::Impossible { .. })));
        assert_eq!(of(&Times::default(), Asked::default()), Err(Open::NotAsked));
    }
}
