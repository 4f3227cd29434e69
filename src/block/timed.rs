//! What the samples of one form say: the fastest state of its rounds, and whether it reproduces.
//!
//! Whatever disturbs a run makes it slower: a neighbour, code that has fallen out of the op cache,
//! a memory predictor in the wrong state. Such states last for some rounds, a batch, or longer, so
//! that averages over them differ from run to run. The headline is the fastest state that rounds
//! of several batches are in, for the long and the short run by itself; the others are told as
//! modes.

use super::stats::{mean, median, modes};
use std::collections::{BTreeMap, BTreeSet};

/// Batches that must have met the fastest state.
const AGREE: usize = 2;
/// The least share of all rounds in it, as a divisor, and their least number.
const ROUNDS: (usize, usize) = (12, 4);
/// A state with less than this share of the rounds is rare.
const RARE: f64 = 0.25;
/// How far apart rounds of a state may lie in any case, in cycles: the counter's own noise.
const NEAR: f64 = 5.0;

/// The calm rounds of one placement in one pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Core cycles of the long runs.
    pub long: Vec<f64>,
    /// Core cycles of the short runs.
    pub short: Vec<f64>,
}

impl Batch {
    /// Cycles between the median runs.
    fn between(&self) -> f64 {
        median(&self.long) - median(&self.short)
    }
}

/// The samples of one form.
#[derive(Debug, Clone, Default)]
pub struct Timed {
    /// How far batches that agree may lie apart, as a share.
    pub near: f64,
    /// Iterations of the block between the long and the short run.
    pub between: f64,
    /// How far the clock advances at once, in cycles.
    pub step: f64,
    /// One for each pass and placement.
    pub batches: Vec<Batch>,
    /// Rounds of placements that the pass at hand has too few of.
    pub partial: BTreeMap<usize, Batch>,
    /// Passes over all placements.
    pub passes: usize,
    /// Placements that the pass at hand still lacks.
    pub waiting: Vec<usize>,
    /// Rounds kept.
    pub kept: usize,
    /// Rounds dropped because the core was shared.
    pub contended: usize,
    /// Rounds dropped because the clock changed in them.
    pub changed: usize,
    /// Why commands were void: the clock changed.
    pub void: Vec<String>,
}

/// The fastest state of one kind of run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fastest {
    mean: f64,
    /// Standard error of the mean.
    error: f64,
    /// Batches that met it.
    batches: usize,
    /// Its share of the rounds.
    share: f64,
}

impl Timed {
    /// Cycles per iteration in the fastest state; where there is none, of the median round.
    pub fn cycles(&self) -> Option<f64> {
        if self.batches.is_empty() {
            return None;
        }
        let fastest = |of| self.fastest(of).map_or_else(|| self.median(of), |f| f.mean);
        Some((fastest(long) - fastest(short)) / self.between)
    }

    /// Twice the standard error to either side; where no state is agreed on, the range of all
    /// batches.
    pub fn range(&self) -> Option<(f64, f64)> {
        let cycles = self.cycles()?;
        if let (Some(long), Some(short)) = (self.fastest(long), self.fastest(short)) {
            let error = 2.0 * long.error.hypot(short.error) / self.between;
            return Some((cycles - error, cycles + error));
        }
        self.batch_range()
    }

    /// Cycles per iteration of the lowest and of the highest batch.
    pub fn batch_range(&self) -> Option<(f64, f64)> {
        let each = || self.batches.iter().map(|b| b.between() / self.between);
        let low = each().min_by(f64::total_cmp)?;
        Some((low, each().max_by(f64::total_cmp)?))
    }

    /// Whether the fastest state of both runs was met often enough to be believed.
    pub fn is_reproduced(&self) -> bool {
        let enough = AGREE.min(self.batches.len()).max(self.batches.len().div_ceil(6));
        let met = |of| self.fastest(of).is_some_and(|f: Fastest| f.batches >= enough);
        met(long) && met(short) && self.cycles().is_some_and(|c| c > 0.0)
    }

    /// States of the long run, as cycles per iteration with their shares.
    pub fn modes(&self) -> Vec<(f64, f64)> {
        let short = self.fastest(short).map_or_else(|| self.median(short), |f| f.mean);
        let rounds = self.rounds(long);
        let all: Vec<f64> = rounds.iter().map(|(l, _)| (l - short) / self.between).collect();
        // One round more or less is no state.
        let least = 1.5 / all.len() as f64;
        modes(&all, 0.02, 0.01).into_iter().filter(|(_, share)| *share > least).collect()
    }

    /// Whether the fastest state is rare: it may be met more often, or a faster one, if it goes on.
    pub fn is_rare(&self) -> bool {
        let rare = |of| self.fastest(of).is_none_or(|f| f.share < RARE);
        rare(long) || rare(short)
    }

    /// How many batches met the fastest state: of the long run, of the short run.
    pub fn agreeing(&self) -> (usize, usize) {
        let count = |of| self.fastest(of).map_or(0, |f: Fastest| f.batches);
        (count(long), count(short))
    }

    /// The rounds of all batches with the number of their batch, in ascending order.
    fn rounds(&self, of: fn(&Batch) -> &[f64]) -> Vec<(f64, usize)> {
        let numbered = |(i, batch)| of(batch).iter().map(move |cycles| (*cycles, i));
        let mut all: Vec<(f64, usize)> =
            self.batches.iter().enumerate().flat_map(numbered).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    }

    fn median(&self, of: fn(&Batch) -> &[f64]) -> f64 {
        median(&self.rounds(of).iter().map(|r| r.0).collect::<Vec<_>>())
    }

    /// The lowest group of rounds that lie close together, are many enough and of enough batches:
    /// a few rounds below it are errors of the clock rather than a state.
    fn fastest(&self, of: fn(&Batch) -> &[f64]) -> Option<Fastest> {
        let all = self.rounds(of);
        let batches = AGREE.min(self.batches.len()).max(2);
        let rounds = (all.len() / ROUNDS.0).max(ROUNDS.1).min(all.len()).max(batches);
        let reach = |v: f64| v + (v * self.near).max(NEAR).max(2.0 * self.step);
        let group = |start: usize| {
            let end = all.partition_point(|(v, _)| *v <= reach(all[start].0));
            &all[start..end]
        };
        let met = |group: &[(f64, usize)]| group.iter().map(|r| r.1).collect::<BTreeSet<_>>().len();
        let dense = |start: &usize| group(*start).len() >= rounds && met(group(*start)) >= batches;
        let first = (0..all.len()).find(dense)?;
        // The group that begins with a stray round holds only a part of the state.
        let near = first..first + group(first).len();
        let state = near.map(group).max_by_key(|g| g.len())?;
        let values: Vec<f64> = state.iter().map(|r| r.0).collect();
        let middle = mean(&values);
        let batches = met(state);
        let spread = values.iter().map(|v| (v - middle).powi(2)).sum::<f64>()
            / (values.len() as f64 - 1.0).max(1.0);
        // Rounds of a batch err together.
        let share = values.len() as f64 / all.len() as f64;
        Some(Fastest { mean: middle, error: (spread / batches as f64).sqrt(), batches, share })
    }
}

fn long(batch: &Batch) -> &[f64] {
    &batch.long
}

fn short(batch: &Batch) -> &[f64] {
    &batch.short
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches of four equal rounds.
    fn timed(pairs: &[(f64, f64)]) -> Timed {
        let of = |v: f64| vec![v; 4];
        let batches =
            pairs.iter().map(|(long, short)| Batch { long: of(*long), short: of(*short) });
        Timed { near: 0.008, between: 1000.0, batches: batches.collect(), ..Timed::default() }
    }

    #[test]
    fn the_fastest_state_that_batches_agree_on_is_the_result() {
        // A third of the long runs and one short run are in a slower state.
        let t = timed(&[
            (2000.0, 1000.0),
            (2002.0, 1001.0),
            (2400.0, 1002.0),
            (1998.0, 999.0),
            (2410.0, 1200.0),
            (2000.0, 998.0),
        ]);
        assert!(t.is_reproduced());
        assert!((t.cycles().unwrap() - 1.0).abs() < 1e-9);
        let (low, high) = t.range().unwrap();
        assert!(low < 1.0 && 1.0 < high && high - low < 0.01);
        assert_eq!(t.modes().len(), 2);
    }

    #[test]
    fn a_single_fast_batch_is_no_state() {
        let t = timed(&[(1500.0, 1000.0), (2000.0, 1000.0), (2001.0, 1000.0), (2002.0, 1000.0)]);
        assert!((t.cycles().unwrap() - 1.001).abs() < 1e-9);
    }

    #[test]
    fn a_state_that_batches_are_in_for_some_rounds_only_is_found() {
        let mut t = timed(&[(2000.0, 1000.0); 6]);
        for (i, batch) in t.batches.iter_mut().enumerate() {
            // The clock counts in steps of 2.5; two stray rounds lie lower.
            batch.long = [2500.0, 2402.5, 2000.0 + 2.5 * (i % 2) as f64, 2498.0].to_vec();
        }
        t.batches[0].long[3] = 1985.0;
        t.batches[1].long[3] = 1700.0;
        assert!(t.is_reproduced());
        assert!((t.cycles().unwrap() - 1.001_25).abs() < 1e-9, "{:?}", t.cycles());
        // Not reproduced where they are all of one batch.
        let mut one =
            timed(&[(2500.0, 1000.0), (2600.0, 1000.0), (2700.0, 1000.0), (2800.0, 1000.0)]);
        one.batches[0].long = vec![2000.0; 16];
        assert!(!one.is_reproduced());
    }

    #[test]
    fn batches_that_never_agree_are_not_reproduced() {
        let t = timed(&[(2000.0, 1000.0), (2100.0, 1000.0), (2200.0, 1000.0), (2300.0, 1000.0)]);
        assert!(!t.is_reproduced());
        assert_eq!(t.range(), Some((1.0, 1.3)));
    }
}
