//! From hits in a run or window to how often a block is entered, and how well that is known.

use crate::hot::entries::ratio::{carried, scaled};
use pmu::breakpoints::{Counted, Coverage, Outcome, Sampled, Unusable, window_length};

use std::time::Duration;

/// Window of a live process, for each group of at most four places.
pub(super) const WINDOW: Duration = Duration::from_secs(2);

/// Of a block without a reference point that can be counted.
pub(super) const TOO_HOT: &str = "not known: too many entries to count, also at its enclosing reference point; \
    counting was given up early";
/// A further run is worth its time if the error is to be so many times smaller.
const GAIN: f64 = 1.5;

/// How often a block is entered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entries {
    /// Of the run, or a second.
    pub count: f64,
    /// Half width, as a ratio; `None` where there may have been any number more.
    pub error: Option<f64>,
    /// For people.
    pub how: String,
}

/// Entries of a whole run. `places`: the block's, then those around it.
pub(super) fn whole(outcome: &Outcome, places: &[usize]) -> Result<Entries, String> {
    let (&block, around) = places.split_first().ok_or("not counted")?;
    let known = |at: usize| {
        let counted = outcome.counted[at];
        (counted.coverage == Coverage::Whole).then_some((counted.hits as f64, 0.0))
    };
    if let Some((count, error)) = known(block) {
        let how = "every entry of a further run".to_owned();
        return Ok(Entries { count, error: Some(error), how });
    }
    let counted = outcome.counted[block];
    match counted.coverage {
        Coverage::Never => return Err("not counted: its file was not mapped again".to_owned()),
        Coverage::Late => {
            let how = "at least: what was counted from when its file was found mapped";
            return Ok(Entries { count: counted.hits as f64, error: None, how: how.to_owned() });
        }
        Coverage::Whole | Coverage::Windows => {}
    }
    if let Some(sampled) = sampled_at(outcome, block) {
        return by_reference(outcome, block, sampled);
    }
    chain(outcome, block, around, &known, true)
        .map(|(count, error)| Entries {
            count,
            error: Some(error),
            how: format!(
                "{} in windows of a further run, scaled by an enclosing reference point",
                counted.hits
            ),
        })
        .ok_or_else(|| too_often(counted))
}

fn sampled_at(outcome: &Outcome, at: usize) -> Option<&Sampled> {
    outcome.sampled.get(at)?.as_ref()
}

/// Entries of a place scaled by its reference point, and their error; through the reference
/// point's own one if need be.
fn scaled_up(outcome: &Outcome, at: usize) -> Option<(f64, f64)> {
    let mut way = vec![at];
    while let Some(sampled) = sampled_at(outcome, *way.last()?) {
        if way.len() > outcome.counted.len() {
            return None;
        }
        way.push(sampled.reference);
    }
    let coldest = outcome.counted[way.pop()?];
    let known = (coldest.coverage == Coverage::Whole).then_some((coldest.hits as f64, 0.0));
    let up = |known, at: &usize| carried(sampled_at(outcome, *at)?, known?);
    way.iter().rev().fold(known, up)
}

fn by_reference(outcome: &Outcome, block: usize, sampled: &Sampled) -> Result<Entries, String> {
    let Some((count, error)) = scaled_up(outcome, block) else {
        return Err(match sampled.unusable {
            Some(Unusable::WindowTooLong(hits)) => format!(
                "not known: more than {hits} entries between two of its enclosing reference point, too \
                 many to count"
            ),
            Some(Unusable::NoReference) => {
                "not known: too many entries to count them all, and no enclosing reference point \
                 to scale by"
                    .to_owned()
            }
            Some(Unusable::ReferenceUnusable) => TOO_HOT.to_owned(),
            None if scaled_up(outcome, sampled.reference).is_none() => {
                "not known: too many entries to count them all, and the entries of its enclosing \
                 reference point are not known either"
                    .to_owned()
            }
            None => format!(
                "not known: too many entries to count them all, and {} windows around its \
                 enclosing reference point are too few or too unlike to scale by",
                sampled.windows.len()
            ),
        });
    };
    let reference_entries: u64 = sampled.windows.iter().map(|w| w.reference_entries).sum();
    let how = format!(
        "{} of them counted in a further run: windows around an enclosing reference \
         point, its first entries and {reference_entries} of {:.0} others chosen at random",
        outcome.counted[block].hits,
        scaled_up(outcome, sampled.reference).map_or(0.0, |(count, _)| count)
    );
    Ok(Entries { count, error: Some(error), how })
}

/// The windows that a run is to have around one reference point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    /// Entries of the reference point for each window.
    pub stride: u64,
    /// Windows.
    pub number: f64,
    /// Reference entries in a window.
    reference_entries: u64,
}

/// Whether a run as planned would give the entries of a block with a much smaller error than the run
/// of this outcome.
///
/// An error falls as the root of the number of reference entries sampled (strata are no wider than
/// they were), for each reference point separately.
pub(super) fn gains(outcome: &Outcome, block: usize, plans: &[Option<Plan>]) -> bool {
    /// Error of a place with too few windows to estimate one.
    const UNKNOWN: f64 = 1.0;
    let (mut now, mut then) = (0.0, 0.0);
    let mut at = block;
    for _ in 0..outcome.counted.len() {
        let Some(sampled) = sampled_at(outcome, at) else { break };
        let Some(plan) = plans.get(sampled.reference).copied().flatten() else { return false };
        if sampled.unusable.is_some() {
            return false;
        }
        let clock = sampled.first.1 as f64 + plan.number * plan.stride as f64;
        let error = carried(sampled, (clock, 0.0)).map_or(UNKNOWN, |(_, error)| error);
        let looked: u64 = sampled.windows.iter().map(|w| w.reference_entries).sum();
        let square = error * error;
        now += square;
        then +=
            square * looked.max(1) as f64 / (plan.number * plan.reference_entries as f64).max(1.0);
        at = sampled.reference;
    }
    outcome.counted[at].coverage == Coverage::Whole && now >= GAIN * GAIN * then
}

/// What a run is to be whose windows may take `seconds` in all, each hit `cost` seconds; from what an
/// earlier run measured.
pub(super) fn plans(outcome: &Outcome, seconds: f64, cost: f64) -> Vec<Option<Plan>> {
    /// More windows reduce the error little.
    const MOST: f64 = 400.0;
    /// Fewer give no estimate, and may cost more.
    const LEAST: f64 = 12.0;
    const AT_LEAST: f64 = 4.0;
    let all = outcome.sampled.len();
    let members = |clock: usize| -> Vec<&Sampled> {
        (0..all).filter_map(|at| sampled_at(outcome, at)).filter(|s| s.reference == clock).collect()
    };
    let each = |s: &Sampled| {
        let hits = s.first.0 + s.windows.iter().map(|w| w.hits).sum::<u64>();
        let reference_entries =
            s.first.1 + s.windows.iter().map(|w| w.reference_entries).sum::<u64>();
        hits as f64 / reference_entries.max(1) as f64
    };
    let clocks = (0..all).filter(|at| !members(*at).is_empty()).count().max(1) as f64;
    let mut found = vec![None; all];
    // The reference point of a reference point comes before it.
    for _ in 0..all {
        for at in 0..all {
            let of = members(at);
            let Some(one) = of.first() else { continue };
            let left = match sampled_at(outcome, at) {
                None => outcome.counted[at].hits.saturating_sub(one.first.1) as f64,
                Some(own) => {
                    let Some::<Plan>(plan) = found[own.reference] else { continue };
                    plan.number * plan.reference_entries as f64 * each(own)
                }
            };
            let hits: f64 = of.iter().map(|s| each(s)).sum();
            let reference_entries = window_length(hits);
            let window = reference_entries as f64 * hits * cost + 1e-4;
            let number = (seconds / clocks / window).max(LEAST.min(AT_LEAST / window));
            let number = number.clamp(1.0, MOST);
            let stride = ((left / number) as u64).max(reference_entries);
            found[at] = Some(Plan { stride, number: left / stride as f64, reference_entries });
        }
    }
    found
}

fn too_often(counted: Counted) -> String {
    format!(
        "not known: {} entries were counted in {:.2} s, too many to count them all, and no \
         enclosing reference point was entered often and evenly enough to scale by",
        counted.hits,
        counted.on.as_secs_f64()
    )
}

/// Known entries of enclosing places, with their errors, scaled to the places inside: each time by
/// the ratio of two that were counted together. `exact`: from the start of a run, whose entries are known.
fn chain(
    outcome: &Outcome,
    block: usize,
    around: &[usize],
    known: &dyn Fn(usize) -> Option<(f64, f64)>,
    exact: bool,
) -> Option<(f64, f64)> {
    let mut found: Vec<(usize, f64, f64)> = Vec::new();
    // From the coldest inwards, the block last.
    for &at in around.iter().rev().chain([&block]) {
        let direct = known(at);
        let through = |&(reference, count, error): &(usize, f64, f64)| {
            let together = outcome.together.get(at)?.get(reference)?;
            scaled(together, (count, error), exact)
        };
        let best = found.iter().filter_map(through).min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((count, error)) = direct.or(best) {
            found.push((at, count, error));
        }
    }
    found.into_iter().find(|f| f.0 == block).map(|(_, count, error)| (count, error))
}

/// Entries a second of a live process.
pub(super) fn rate(outcome: &Outcome, places: &[usize]) -> Result<Entries, String> {
    let (&block, around) = places.split_first().ok_or("not counted")?;
    let known = |at: usize| {
        let Counted { hits, on, slowed, .. } = outcome.counted[at];
        // What hits take keeps a program from running if they are all of one thread, and not at all
        // if they are of others: half of it, give or take as much.
        let half = 0.5 * slowed.as_secs_f64();
        let time = on.as_secs_f64() - half;
        let error = (1.0 / (hits.max(1) as f64).sqrt()).hypot(half / (time - half));
        (on >= WINDOW / 10 && hits > 0 && slowed < on / 2).then(|| (hits as f64 / time, error))
    };
    let counted = outcome.counted[block];
    if counted.coverage == Coverage::Never {
        return Err("not counted: its file is not mapped there".to_owned());
    }
    let seconds = WINDOW.as_secs();
    if counted.coverage != Coverage::Windows
        && let Some((count, error)) = known(block)
    {
        let how = format!("a second, from a window of {seconds} s");
        return Ok(Entries { count, error: Some(error), how });
    }
    let around: Vec<usize> = around
        .iter()
        .copied()
        .filter(|a| outcome.counted[*a].coverage != Coverage::Windows)
        .collect();
    let known = |at: usize| if at == block { None } else { known(at) };
    chain(outcome, block, &around, &known, false)
        .map(|(count, error)| Entries {
            count,
            error: Some(error),
            how: format!(
                "a second, from {} in parts of {seconds} s, scaled by an enclosing reference point",
                counted.hits
            ),
        })
        .ok_or_else(|| too_often(counted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu::breakpoints::{Together, Window};
    use std::time::Duration;

    /// 3,000 hits in 2 s, which took 0.4 s: 1,500 to 1,875 a second, whether they delayed the
    /// program or other threads alone.
    #[test]
    fn a_rate_covers_what_counting_itself_took() {
        let seconds = Duration::from_secs_f64;
        let counted = Counted {
            hits: 3_000,
            coverage: Coverage::Late,
            on: seconds(2.0),
            slowed: seconds(0.4),
        };
        let outcome = Outcome { counted: vec![counted], ..Outcome::default() };
        let rate = rate(&outcome, &[0]).expect("known");
        let error = rate.error.expect("known") * rate.count;
        assert!(rate.count - error <= 1_500.0 && rate.count + error >= 1_875.0, "{rate:?}");
        assert!(rate.count > 1_500.0 && rate.count < 1_875.0, "{rate:?}");
    }

    /// Three nested loops of 1,000 iterations each: the innermost in windows alone.
    #[test]
    fn what_is_too_hot_to_count_follows_from_what_is_around_it() {
        let counted = |hits, coverage| Counted { hits, coverage, ..Counted::default() };
        let mut outcome = Outcome {
            counted: vec![
                counted(60_000, Coverage::Windows),
                counted(90_000, Coverage::Windows),
                counted(1_000, Coverage::Whole),
                counted(1, Coverage::Whole),
            ],
            together: vec![vec![Together::default(); 4]; 4],
            ..Outcome::default()
        };
        let even = |number| vec![(10_000, 10); number];
        outcome.together[0][1].windows = even(6);
        outcome.together[1][2] = Together { first: (10_000, 10), windows: even(8) };
        outcome.together[0][3].windows = vec![(60_000, 1)];
        let entries = whole(&outcome, &[0, 1, 2, 3]).expect("known");
        let found = entries.error.expect("known");
        assert!((entries.count - 1e9).abs() < 1.0, "{entries:?}");
        assert!(found < 1e-9, "windows that are all alike: {entries:?}");
        assert!(whole(&outcome, &[0, 3]).unwrap_err().starts_with("not known"));
        assert_eq!(whole(&outcome, &[2]).map(|e| (e.count, e.error)), Ok((1_000.0, Some(0.0))));
        // What a child did before it was found is unknown: it has no error.
        outcome.counted[2].coverage = Coverage::Late;
        let late = whole(&outcome, &[2]).expect("a lower bound");
        assert!(late.error.is_none() && late.how.starts_with("at least"), "{late:?}");
    }

    /// 200,000 entries of a loop of 500 iterations, 10 µs each hit: 2 s are enough for 392 windows of one
    /// reference entry (5.1 ms each).
    #[test]
    fn a_second_run_has_as_many_windows_as_its_time_allows() {
        let counted = |hits, coverage| Counted { hits, coverage, ..Counted::default() };
        let window = Window { hits: 500, reference_entries: 1, stratum: 10_000, weight: 1.0 };
        let sampled = Sampled {
            reference: 1,
            first: (50_000, 100),
            windows: vec![window; 20],
            unusable: None,
        };
        let outcome = Outcome {
            counted: vec![counted(60_000, Coverage::Windows), counted(200_100, Coverage::Whole)],
            sampled: vec![Some(sampled), None],
            ..Outcome::default()
        };
        // By hand: 2 s / (500 × 10 µs + 0.1 ms) = 392.2; 200,000 / 392.2 = 510.
        let planned = plans(&outcome, 2.0, 1e-5);
        let strides: Vec<_> = planned.iter().map(|p| p.map(|p| p.stride)).collect();
        assert_eq!(strides, vec![None, Some(510)]);
        // 50,000 + 200,000 × 500, to one reference entry.
        let entries = whole(&outcome, &[0, 1]).expect("known");
        let error = entries.error.expect("known") * entries.count;
        assert!(entries.count == 100_050_000.0 && (error - 500.0).abs() < 1e-6, "{entries:?}");
    }

    /// 20 windows of one reference entry, 400 and 600 hits alternately. Twice the time is not worth another run
    /// (the root of 2 is less than 1.5), nine times is.
    #[test]
    fn a_second_run_is_made_only_where_it_reduces_the_error_much() {
        let counted = |hits, coverage| Counted { hits, coverage, ..Counted::default() };
        let window = |at: u64| Window {
            hits: 400 + 200 * (at % 2),
            reference_entries: 1,
            stratum: 500,
            weight: 1.0,
        };
        let windows = (0..20).map(window).collect();
        let sampled = Sampled { reference: 1, first: (0, 0), windows, unusable: None };
        let mut outcome = Outcome {
            counted: vec![counted(10_000, Coverage::Windows), counted(10_000, Coverage::Whole)],
            sampled: vec![Some(sampled), None],
            ..Outcome::default()
        };
        let plan = |number: f64| {
            let stride = (10_000.0 / number) as u64;
            vec![None, Some(Plan { stride, number, reference_entries: 1 })]
        };
        assert!(!gains(&outcome, 0, &plan(40.0)) && gains(&outcome, 0, &plan(180.0)));
        // No number of windows helps one that lost its reference point.
        if let Some(sampled) = &mut outcome.sampled[0] {
            sampled.unusable = Some(Unusable::ReferenceUnusable);
        }
        assert!(!gains(&outcome, 0, &plan(180.0)));
    }
}
