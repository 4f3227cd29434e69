//! The fastest states of the long and the short runs of a form.

use super::{Batch, FormTiming, Pair, long, short};
use crate::timing::state::{Nearness, Run, State, fastest, is_believed, usual};
use std::collections::BTreeSet;

/// Rounds in which both runs must be in their fastest states.
const JOINT: usize = 2;
/// Share of the fastest rounds that must be in one state of a run.
const WHOLE: f64 = 0.75;

impl FormTiming {
    pub(super) fn find_states(&self) -> Option<(State, State)> {
        if self.usual {
            // As differences: pairs are of different lengths.
            let near = Nearness { share: self.tolerance, step: self.step };
            let long = usual(self.all_differences(), self.batches.len(), near)?;
            let all = (f64::NEG_INFINITY, f64::INFINITY);
            let none = State { mean: 0.0, error: 0.0, range: all, ..long.clone() };
            return Some((long, none));
        }
        let placements: BTreeSet<usize> = self.batches.iter().map(|b| b.placement).collect();
        let batches =
            |placement: usize| self.batches.iter().filter(move |b| b.placement == placement);
        if placements.len() < 2 || placements.iter().any(|p| batches(*p).count() < 2) {
            return self.states_among(&|_| true);
        }
        let states: Vec<_> = placements
            .iter()
            .filter_map(|placement| {
                Some((*placement, self.states_among(&|b| b.placement == *placement)?))
            })
            .collect();
        self.fastest_placements(states)
    }

    /// The states of the placements with the fastest long runs, combined: ends of loops differ in cost by
    /// placement, which cancels only between the long and the short run of one placement.
    fn fastest_placements(&self, states: Vec<(usize, (State, State))>) -> Pair {
        let near = Nearness { share: self.tolerance, step: self.step };
        let long = |pair: &(usize, (State, State))| pair.1.0.mean;
        let least = states.iter().map(long).min_by(f64::total_cmp)?;
        // Faster rounds of a placement that has no state.
        let stateless = |b: &Batch| states.iter().all(|(placement, _)| *placement != b.placement);
        let faster: Vec<(usize, usize)> = self
            .pairs()
            .filter(|((batch, _), (long, _))| {
                stateless(&self.batches[*batch]) && near.above(*long) < least
            })
            .map(|(place, _)| place)
            .collect();
        let (long, short): (Vec<State>, Vec<State>) = states
            .iter()
            .filter(|pair| long(pair) <= near.above(least))
            .map(|(_, pair)| pair.clone())
            .unzip();
        let mut long = State::together(&long)?;
        if is_believed(&faster, self.pairs().count()) {
            long.rare.extend(faster);
        }
        Some((long, State::together(&short)?))
    }

    /// The fastest states of both runs among some batches.
    fn states_among(&self, own: &dyn Fn(&Batch) -> bool) -> Pair {
        let fastest = |of: fn(&Batch) -> &[f64]| self.fastest(self.rounds(own, of), own);
        let (long, short) = (fastest(long)?, fastest(short)?);
        let is_joint = |(l, s): &(f64, f64)| long.holds(*l) && short.holds(*s);
        if self.pairs_of(own).filter(|(_, pair)| is_joint(pair)).take(JOINT).count() >= JOINT {
            return Some((long, short));
        }
        self.joint(own)
    }

    /// The state of the rounds with the lowest sum of long and short run, if both runs are in one state there.
    fn joint(&self, own: &dyn Fn(&Batch) -> bool) -> Pair {
        let mut sums = Vec::new();
        for ((batch, round), (long, short)) in self.pairs_of(own) {
            sums.push((long + short, batch, round));
        }
        let sum = self.fastest(sums, own)?;
        let one = |of: fn((f64, f64)) -> f64| {
            let runs = self.pairs_of(own).filter(|(_, (l, s))| sum.holds(l + s));
            let runs: Vec<Run> = runs.map(|((b, n), pair)| (of(pair), b, n)).collect();
            let all = runs.len();
            self.fastest(runs, own).filter(|state| state.share > WHOLE).map(|state| State {
                share: state.share * all as f64 / self.pairs_of(own).count() as f64,
                rare: Vec::new(),
                ..state
            })
        };
        one(|pair| pair.0).zip(one(|pair| pair.1))
    }

    /// Pairs of runs of some batches.
    fn pairs_of<'a>(
        &'a self,
        own: &'a dyn Fn(&Batch) -> bool,
    ) -> impl Iterator<Item = ((usize, usize), (f64, f64))> + 'a {
        self.pairs().filter(move |((batch, _), _)| own(&self.batches[*batch]))
    }

    /// The fastest state of `runs` of some batches.
    fn fastest(&self, runs: Vec<Run>, own: &dyn Fn(&Batch) -> bool) -> Option<State> {
        let near = Nearness { share: self.tolerance, step: self.step };
        fastest(runs, self.batches.iter().filter(|b| own(b)).count(), near)
    }
}
