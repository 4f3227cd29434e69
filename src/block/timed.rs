//! What the samples of one form say: batches, their fastest mode, and whether it reproduces.
//!
//! Whatever disturbs a run makes it slower: a neighbour, code that has fallen out of the op cache,
//! a memory predictor in the wrong state. Such states last for a whole batch and longer, so that
//! averages over them differ from run to run. The headline is the fastest state that several
//! batches agree on, for the long and the short run by itself; the others are told as modes.

use super::stats::{mean, modes};

/// Batches that must agree on the fastest state.
const AGREE: usize = 3;
/// How far apart they may lie in any case, in cycles: the counter's own noise.
const NEAR: f64 = 5.0;

/// The calm rounds of one placement in one pass, averaged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Batch {
    /// Core cycles of the long run.
    pub long: f64,
    /// Core cycles of the short run.
    pub short: f64,
}

/// The samples of one form.
#[derive(Debug, Clone, Default)]
pub struct Timed {
    /// How far batches that agree may lie apart, as a share.
    pub near: f64,
    /// Iterations of the block between the long and the short run.
    pub between: f64,
    /// One for each pass and placement.
    pub batches: Vec<Batch>,
    /// Passes over all placements.
    pub passes: usize,
    /// Placements that the pass at hand still lacks.
    pub waiting: Vec<usize>,
    /// Rounds kept.
    pub kept: usize,
    /// Rounds dropped because the core was shared.
    pub contended: usize,
    /// Why commands were void: the clock changed.
    pub void: Vec<String>,
}

/// The fastest state of one kind of run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fastest {
    mean: f64,
    /// Standard error of the mean.
    error: f64,
    count: usize,
}

impl Timed {
    /// Cycles per iteration in the fastest state; where none is agreed on, of the median batch.
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
        let all = || self.batches.iter().map(|b| (b.long - b.short) / self.between);
        Some((all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max)))
    }

    /// Whether the fastest state of both runs was met often enough to be believed.
    pub fn is_reproduced(&self) -> bool {
        let enough = AGREE.min(self.batches.len()).max(self.batches.len().div_ceil(6));
        let met = |of| self.fastest(of).is_some_and(|f: Fastest| f.count >= enough);
        met(long) && met(short) && self.cycles().is_some_and(|c| c > 0.0)
    }

    /// States of the long run, as cycles per iteration with their shares.
    pub fn modes(&self) -> Vec<(f64, f64)> {
        let short = self.fastest(short).map_or_else(|| self.median(short), |f| f.mean);
        let all: Vec<f64> = self.batches.iter().map(|b| (b.long - short) / self.between).collect();
        modes(&all, 0.02, 0.01)
    }

    /// How many batches met the fastest state: of the long run, of the short run.
    pub fn agreeing(&self) -> (usize, usize) {
        let count = |of| self.fastest(of).map_or(0, |f: Fastest| f.count);
        (count(long), count(short))
    }

    fn sorted(&self, of: fn(&Batch) -> f64) -> Vec<f64> {
        let mut all: Vec<f64> = self.batches.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    fn median(&self, of: fn(&Batch) -> f64) -> f64 {
        super::stats::median(&self.sorted(of))
    }

    /// The lowest group of batches that lie close together. A single batch below it is an error of
    /// the clock rather than a state.
    fn fastest(&self, of: fn(&Batch) -> f64) -> Option<Fastest> {
        let all = self.sorted(of);
        let reach = |v: f64| v + (v * self.near).max(NEAR);
        let needed = AGREE.min(all.len()).max(2);
        let start =
            (0..=all.len().checked_sub(needed)?).find(|i| all[i + needed - 1] <= reach(all[*i]))?;
        let group: Vec<f64> =
            all[start..].iter().copied().take_while(|v| *v <= reach(all[start])).collect();
        let middle = mean(&group);
        let n = group.len() as f64;
        let spread = group.iter().map(|v| (v - middle).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Some(Fastest { mean: middle, error: (spread / n).sqrt(), count: group.len() })
    }
}

fn long(batch: &Batch) -> f64 {
    batch.long
}

fn short(batch: &Batch) -> f64 {
    batch.short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(pairs: &[(f64, f64)]) -> Timed {
        let batches = pairs.iter().map(|(long, short)| Batch { long: *long, short: *short });
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
    fn batches_that_never_agree_are_not_reproduced() {
        let t = timed(&[(2000.0, 1000.0), (2100.0, 1000.0), (2200.0, 1000.0), (2300.0, 1000.0)]);
        assert!(!t.is_reproduced());
        assert_eq!(t.range(), Some((1.0, 1.3)));
    }
}
