//! Timing: how many core cycles an iteration takes.
//!
//! | file | concern |
//! |---|---|
//! | `measure` | forms of a block, timed in passes by a source of core cycles |
//! | `round_filter` | accepts rounds with a steady clock and no contention |
//! | `form_timing` | samples of a form, and whether they reproduce |
//!
//! This file finds the fastest state that rounds of several batches are in, and the usual one.

#[cfg(target_arch = "x86_64")]
pub(crate) mod form_timing;
#[cfg(target_arch = "x86_64")]
pub(crate) mod measure;
#[cfg(target_arch = "x86_64")]
pub(crate) mod round_filter;

use crate::stats::mean;
use std::collections::BTreeMap;

/// Result change by rare faster states that puts a result in doubt, as a share.
pub const DOUBT: f64 = 0.1;
/// Batches that must share a state: at least this many, and one in this many.
const AGREE: (usize, usize) = (2, 6);
/// A state needs max(rounds / 24, min(4, rounds / 2)) rounds, and 2 at least.
const ROUNDS: (usize, usize) = (24, 4);
/// Rounds a batch must contribute to count as having seen the state, if batches have enough.
const ROUNDS_PER_BATCH: usize = 2;
/// A rare faster state needs this share of the rounds, and this many at least.
const RARE: (f64, usize) = (0.03, 3);
/// The usual state needs this share of the rounds: one of three pairs of runs.
const MOST: f64 = 0.3;
/// Most steps towards the centre of a state.
const STEPS: usize = 50;
/// Noise of the counter in cycles: rounds of a state may always differ by this.
const NEAR: f64 = 5.0;

/// Greatest difference of rounds in one state.
#[derive(Debug, Clone, Copy)]
pub struct Nearness {
    /// As a share of the cycles.
    pub share: f64,
    /// Granularity of the clock, in cycles.
    pub step: f64,
}

impl Nearness {
    /// The highest that is as fast as `cycles`.
    pub fn above(self, cycles: f64) -> f64 {
        cycles + (cycles * self.share).max(NEAR).max(2.0 * self.step)
    }
}

/// One run: its cycles, its batch, and its round in that.
pub type Run = (f64, usize, usize);

/// A state of one kind of run.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Mean of its rounds, in cycles.
    pub mean: f64,
    /// Standard error of the mean, by the batches that saw it.
    pub error: f64,
    /// Batches that saw it.
    pub batches: usize,
    /// Its share of the rounds.
    pub share: f64,
    /// From its lowest round to its highest, in cycles.
    pub range: (f64, f64),
    /// Batch and round of those in a faster state, too rare to be the result and too frequent to be strays.
    pub rare: Vec<(usize, usize)>,
}

impl State {
    /// Combines equally fast states of different code.
    pub fn together(states: &[Self]) -> Option<Self> {
        let mean_of = |of: fn(&Self) -> f64| mean(&states.iter().map(of).collect::<Vec<_>>());
        let squares = states.iter().map(|state| state.error.powi(2)).sum::<f64>();
        let low = states.iter().map(|state| state.range.0).min_by(f64::total_cmp)?;
        let high = states.iter().map(|state| state.range.1).max_by(f64::total_cmp)?;
        Some(Self {
            mean: mean_of(|state| state.mean),
            error: squares.sqrt() / states.len() as f64,
            batches: states.iter().map(|state| state.batches).sum(),
            share: mean_of(|state| state.share),
            range: (low, high),
            rare: states.iter().flat_map(|state| state.rare.clone()).collect(),
        })
    }

    /// Whether a run of `cycles` is in this state.
    pub fn holds(&self, cycles: f64) -> bool {
        self.range.0 <= cycles && cycles <= self.range.1
    }
}

/// The lowest group of rounds (of `batches` batches) that lie close together, are enough, and come from enough
/// batches. A few rounds below it are errors of the clock rather than a state.
pub fn fastest(mut rounds: Vec<Run>, batches: usize, near: Nearness) -> Option<State> {
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let agree = AGREE.0.min(batches).max(batches / AGREE.1);
    let least = ROUNDS.1.min(rounds.len() / 2).max(rounds.len() / ROUNDS.0).max(2);
    let group = |start: usize| {
        let end = rounds.partition_point(|(v, ..)| *v <= near.above(rounds[start].0));
        &rounds[start..end]
    };
    let enough = |start: &usize| {
        let group = group(*start);
        group.len() >= least && agreeing_means(group, rounds.len(), batches).count() >= agree
    };
    let first = (0..rounds.len()).find(enough)?;
    // A group with a stray first round holds only a part of the state.
    let start =
        (first..first + group(first).len()).filter(enough).max_by_key(|i| group(*i).len())?;
    let middle = mean(&values(group(start)));
    let (start, end) = centred(&rounds, middle, |middle| near.above(middle) - middle);
    let found = state(&rounds[start..end], rounds.len(), batches)?;
    let rare = (0..start)
        .map(|i| group(i)[..group(i).len().min(start - i)].iter().map(|r| (r.1, r.2)).collect())
        .find(|group: &Vec<_>| is_believed(group, rounds.len()));
    Some(State { rare: rare.unwrap_or_default(), ..found })
}

/// Whether a group, by batch and round, is more than strays among `rounds`: enough rounds, of two batches.
pub fn is_believed(group: &[(usize, usize)], rounds: usize) -> bool {
    let strays = (rounds as f64 * RARE.0).max(RARE.1 as f64);
    group.len() as f64 >= strays && group.iter().any(|place| place.0 != group[0].0)
}

/// First and last round (exclusive) around the centre of the state at `middle`: a group that was found from below
/// has the state's lowest rounds, and may lack its highest.
fn centred(rounds: &[Run], mut middle: f64, width: impl Fn(f64) -> f64) -> (usize, usize) {
    let mut found = (0, 0);
    for _ in 0..STEPS {
        let width = width(middle);
        let around = (
            rounds.partition_point(|run| run.0 < middle - width),
            rounds.partition_point(|run| run.0 <= middle + width),
        );
        if around == found || around.0 == around.1 {
            break;
        }
        found = around;
        middle = mean(&values(&rounds[found.0..found.1]));
    }
    found
}

/// The group of rounds around `middle`, no further than `width` from its own centre.
pub fn around(mut rounds: Vec<Run>, batches: usize, middle: f64, width: f64) -> Option<State> {
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (start, end) = centred(&rounds, middle, |_| width);
    state(&rounds[start..end], rounds.len(), batches)
}

/// The group of rounds around the median, if it holds enough of them.
pub fn usual(mut rounds: Vec<Run>, batches: usize, near: Nearness) -> Option<State> {
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let middle = rounds.get(rounds.len() / 2)?.0;
    let width = near.above(middle) - middle;
    let group: Vec<Run> =
        rounds.iter().filter(|run| (run.0 - middle).abs() <= width).copied().collect();
    if (group.len() as f64) < MOST * rounds.len() as f64 {
        return None;
    }
    state(&group, rounds.len(), batches)
}

/// The state of a group of sorted rounds.
fn state(group: &[Run], rounds: usize, batches: usize) -> Option<State> {
    let means: Vec<f64> = agreeing_means(group, rounds, batches).collect();
    let middle = mean(&values(group));
    let spread = means.iter().map(|v| (v - middle).powi(2)).sum::<f64>()
        / (means.len() as f64 - 1.0).max(1.0);
    Some(State {
        mean: middle,
        error: (spread / (means.len() as f64).max(1.0)).sqrt(),
        batches: means.len(),
        share: group.len() as f64 / rounds as f64,
        range: (group.first()?.0, group.last()?.0),
        rare: Vec::new(),
    })
}

fn values(rounds: &[Run]) -> Vec<f64> {
    rounds.iter().map(|r| r.0).collect()
}

/// The means of the batches that saw a group: a single round of a batch may be a stray.
fn agreeing_means(group: &[Run], rounds: usize, batches: usize) -> impl Iterator<Item = f64> {
    let mut each: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
    for (cycles, batch, _) in group {
        let (sum, count) = each.entry(*batch).or_default();
        (*sum, *count) = (*sum + cycles, *count + 1);
    }
    let enough = if rounds >= 2 * ROUNDS_PER_BATCH * batches { ROUNDS_PER_BATCH } else { 1 };
    each.into_values().filter(move |own| own.1 >= enough).map(|(sum, count)| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEARNESS: Nearness = Nearness { share: 0.008, step: 2.5 };

    /// Batches of these rounds.
    fn of(batches: &[&[f64]]) -> Option<State> {
        let mut rounds = Vec::new();
        for (i, own) in batches.iter().enumerate() {
            rounds.extend(own.iter().enumerate().map(|(n, cycles)| (*cycles, i, n)));
        }
        fastest(rounds, batches.len(), NEARNESS)
    }

    #[test]
    fn a_batch_and_a_stray_round_of_another_are_no_state() {
        let one = [2000.0; 16];
        let mut other = [2400.0; 16];
        other[3] = 2015.0;
        assert_eq!(of(&[&one, &other, &[2400.0; 16]]).map(|s| s.mean), Some(2400.0));
        other[4] = 2002.0;
        assert!((of(&[&one, &other, &[2400.0; 16]]).unwrap().mean - 2000.0).abs() < 2.0);
    }

    #[test]
    fn a_state_of_few_batches_among_many_is_none() {
        let mut all: Vec<&[f64]> = vec![&[2000.0; 8]; 27];
        all.extend([&[1980.0; 8] as &[f64]; 3]);
        let found = of(&all).unwrap();
        // 3 of 30 are fewer than a sixth, but they leave a doubt.
        assert_eq!((found.mean, found.batches, found.rare.len()), (2000.0, 27, 24));
        assert_eq!(found.rare[0], (27, 0));
    }

    #[test]
    fn few_samples_can_be_in_a_state() {
        assert_eq!(of(&[&[2000.0], &[2001.0]]).map(|s| s.batches), Some(2));
        assert_eq!(of(&[&[2000.0, 2001.0], &[2000.0, 2500.0]]).map(|s| s.batches), Some(2));
        assert_eq!(of(&[&[2000.0, 2100.0, 2200.0, 2300.0]]), None);
        assert_eq!(of(&[]), None);
    }
}
