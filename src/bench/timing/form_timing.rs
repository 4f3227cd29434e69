//! Samples of one form: the fastest state of its rounds, and whether it reproduces.
//!
//! Disturbances make a run slower: contention, code evicted from the op cache, a memory predictor in the
//! wrong state. Such states last for some rounds, a batch, or longer, so averages over them do not
//! reproduce. The headline is the fastest state that rounds of several batches share, for the long and
//! the short run separately; the others are reported as modes.

#[cfg(test)]
mod tests;

use super::{DOUBT, Nearness, Run, State, around, fastest, is_believed, usual};
use crate::stats::{median, modes};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};

/// A state with less than this share of the rounds is rare.
const RARE: f64 = 0.25;

/// A result with a greater error than this share gets more passes.
const PRECISE: f64 = 0.01;
/// Factor by which a state's differences may spread wider than its runs: both runs have noise.
const WIDER: f64 = 1.5;
/// Batches that must agree where rounds do not.
const NARROW: usize = 8;

/// Rounds in which both runs must be in their fastest states.
const JOINT: usize = 2;
/// Share of the fastest rounds that must be in one state of a run.
const WHOLE: f64 = 0.75;

/// The states of the long and the short run, where there are any.
pub(super) type Pair = Option<(State, State)>;
/// These, and the differences in them.
type Found = (Pair, Option<State>);

/// The accepted rounds of one placement in one pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// The placement, by number.
    pub placement: usize,
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
pub struct FormTiming {
    /// Greatest difference of batches that agree, as a share.
    pub tolerance: f64,
    /// Iterations of the block between the long and the short run.
    pub between: f64,
    /// Granularity of the clock, in cycles.
    pub step: f64,
    /// Standard errors of the calibrations, as shares.
    pub clock_errors: Vec<f64>,
    /// One for each pass and placement.
    pub batches: Vec<Batch>,
    /// Rounds of placements for which the current pass has too few.
    pub partial: BTreeMap<usize, Batch>,
    /// Passes over all placements.
    pub passes: usize,
    /// Placements that the current pass still lacks.
    pub waiting: Vec<usize>,
    /// Accepted rounds.
    pub accepted: usize,
    /// Rounds rejected because of contention.
    pub contended: usize,
    /// Rounds rejected because the clock frequency changed.
    pub clock_changed: usize,
    /// Involuntary switches of the worker during timing, if the kernel reports them.
    pub switches: Option<u64>,
    /// Why commands were void.
    pub void: Vec<String>,
    /// Whether the result is the usual difference of long and short runs instead of that of their fastest states:
    /// the time that a program's loop usually takes. Pairs of runs may differ in length.
    pub usual: bool,
    /// A hash of the batches in which states were found last, and these.
    pub(crate) found: RefCell<Option<(u64, Found)>>,
}

/// Most reasons recorded.
const REASONS: usize = 20;

impl FormTiming {
    /// Notes why rounds are void.
    pub fn note_void(&mut self, why: String) {
        if self.void.len() < REASONS {
            self.void.push(why);
        }
    }

    /// The samples of some placements only.
    pub fn of_placements(&self, are_kept: impl Fn(usize) -> bool) -> Self {
        let kept = |batch: &&Batch| are_kept(batch.placement);
        let batches = self.batches.iter().filter(kept).cloned().collect();
        Self { batches, found: RefCell::default(), ..self.clone() }
    }

    /// Cycles per iteration in the fastest state; where there is none, of the median round.
    pub fn cycles(&self) -> Option<f64> {
        if self.batches.is_empty() {
            return None;
        }
        let cycles = match (self.differences(), self.states()) {
            (Some(differences), _) => differences.mean,
            (None, Some((long, short))) => long.mean - short.mean,
            (None, None) => self.median(long) - self.median(short),
        };
        Some(cycles / self.between)
    }

    /// Differences of long and short run of the rounds in the fastest state. Slowdown of both runs of a round
    /// cancels in them, but not between the means of the two states, which are of different rounds.
    fn differences(&self) -> Option<State> {
        self.found().1
    }

    fn differences_in(&self, states: &Pair) -> Option<State> {
        let (long, short) = states.as_ref().filter(|_| !self.usual)?;
        let near = Nearness { share: self.tolerance, step: self.step };
        let width = WIDER * (near.above(long.mean) - long.mean);
        around(self.all_differences(), self.batches.len(), long.mean - short.mean, width)
    }

    fn all_differences(&self) -> Vec<Run> {
        self.pairs().map(|((batch, round), (long, short))| (long - short, batch, round)).collect()
    }

    /// Two standard errors to either side, of the fastest state and of the differences in it, extended to faster
    /// states too rare to count; the range of all batches if they share no state.
    pub fn range(&self) -> Option<(f64, f64)> {
        if let Some((long, short)) = self.states() {
            let (low, high) = self.doubt(&long, &short);
            let clock = (long.mean - short.mean) * self.clock_error();
            let around = |error: f64| 2.0 * error.hypot(clock) / self.between;
            let error = around(long.error.hypot(short.error));
            let (low, high) = (low - error, high + error);
            let Some(State { mean, error, .. }) = self.differences() else {
                return Some((low, high));
            };
            let (cycles, error) = (mean / self.between, around(error));
            return Some((low.min(cycles - error), high.max(cycles + error)));
        }
        self.batch_range()
    }

    /// The standard error of all calibrations together: batches of a pass share theirs, so that it
    /// does not show between them.
    fn clock_error(&self) -> f64 {
        let squares = self.clock_errors.iter().map(|error| error * error).sum::<f64>();
        squares.sqrt() / (self.clock_errors.len() as f64).max(1.0)
    }

    /// Cycles per iteration, lowest and highest, by these states and by the rounds in which one of
    /// the runs was faster than its state while the other was in it.
    fn doubt(&self, long: &State, short: &State) -> (f64, f64) {
        let cycles = (long.mean - short.mean) / self.between;
        let round = |(batch, round): &(usize, usize)| {
            let batch = self.batches.get(*batch)?;
            Some((*batch.long.get(*round)?, *batch.short.get(*round)?))
        };
        let of = |rounds: &[(usize, usize)], other: &dyn Fn((f64, f64)) -> bool| {
            let pairs = rounds.iter().filter_map(round).filter(|pair| other(*pair));
            let all: Vec<f64> = pairs.map(|(l, s)| (l - s) / self.between).collect();
            if all.len() < 2 { cycles } else { median(&all) }
        };
        let by_long = of(&long.rare, &|(_, s)| short.holds(s));
        let by_short = of(&short.rare, &|(l, _)| long.holds(l));
        (cycles.min(by_long).min(by_short), cycles.max(by_long).max(by_short))
    }

    /// Cycles per iteration of the lowest and of the highest batch.
    pub fn batch_range(&self) -> Option<(f64, f64)> {
        let each = || self.batches.iter().map(|b| b.between() / self.between);
        let low = each().min_by(f64::total_cmp)?;
        Some((low, each().max_by(f64::total_cmp)?))
    }

    /// Whether both runs have a fastest state, and no rare faster one would change the result by much; or whether
    /// they have none and all batches lie close together nevertheless.
    pub fn is_reproduced(&self) -> bool {
        let Some((long, short)) = self.states() else { return self.is_narrow() };
        if self.has_states_apart() {
            return false;
        }
        let cycles = (long.mean - short.mean) / self.between;
        let (low, high) = self.doubt(&long, &short);
        let near = (DOUBT * cycles).max(self.tolerance * long.mean / self.between);
        cycles > 0.0 && high - cycles <= near && cycles - low <= near
    }

    /// Whether the short run took longer than the long one in as many rounds as both were in their fastest states, and in
    /// more than strays: the two runs are in states of their own, none of which is more real than the others.
    pub fn has_states_apart(&self) -> bool {
        let Some((long, short)) = self.states().filter(|_| !self.usual) else { return false };
        let is_joint = |(_, (l, s)): &(_, (f64, f64))| long.holds(*l) && short.holds(*s);
        let is_reversed = |(_, (long, short)): &(_, (f64, f64))| long < short;
        let reversed: Vec<_> = self.pairs().filter(is_reversed).map(|(place, _)| place).collect();
        is_believed(&reversed, self.pairs().count())
            && reversed.len() >= self.pairs().filter(is_joint).count()
    }

    /// Whether there are enough batches and they agree within [`DOUBT`].
    fn is_narrow(&self) -> bool {
        let range = self.batch_range().filter(|_| self.batches.len() >= NARROW);
        range.is_some_and(|(low, high)| low > 0.0 && high <= (1.0 + DOUBT) * low)
    }

    /// Cycles per iteration of all rounds, as groups with their shares.
    pub fn modes(&self) -> Vec<(f64, f64)> {
        let pairs = |b: &Batch| b.long.iter().zip(&b.short).map(|(l, s)| l - s).collect::<Vec<_>>();
        let all: Vec<f64> =
            self.batches.iter().flat_map(pairs).map(|cycles| cycles / self.between).collect();
        // A single round is not a state.
        let least = 1.5 / all.len() as f64;
        modes(&all, 0.02, 0.01).into_iter().filter(|(_, share)| *share > least).collect()
    }

    /// Whether the fastest state is rare or does not reproduce, so that more passes may help.
    pub fn is_rare(&self) -> bool {
        let rare = |(long, short): (State, State)| long.share.min(short.share) < RARE;
        self.states().is_none_or(rare) || !self.is_reproduced()
    }

    /// Whether the range of the result exceeds [`PRECISE`] to both sides.
    pub fn is_vague(&self) -> bool {
        let (Some(cycles), Some((low, high))) = (self.cycles(), self.range()) else { return true };
        high - low > 2.0 * PRECISE * cycles
    }

    /// Number of batches in the fastest state, for the long and the short run.
    pub fn agreeing(&self) -> (usize, usize) {
        self.states().map_or((0, 0), |(long, short)| (long.batches, short.batches))
    }

    /// The fastest states of the long and the short run, if there are rounds in which both runs were in theirs.
    /// Otherwise the two are alternatives, and their difference would be a number that no round gave: then the
    /// states of the fastest rounds.
    fn states(&self) -> Pair {
        self.found().0
    }

    /// Cached: several methods need the states of the same batches.
    fn found(&self) -> Found {
        let mark = self.mark();
        if let Some((known, found)) = &*self.found.borrow()
            && *known == mark
        {
            return found.clone();
        }
        let states = self.find_states();
        let found = (states.clone(), self.differences_in(&states));
        *self.found.borrow_mut() = Some((mark, found.clone()));
        found
    }

    /// A hash of everything that states follow from.
    fn mark(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        for value in [self.tolerance, self.step] {
            hash.write_u64(value.to_bits());
        }
        for batch in &self.batches {
            hash.write_usize(batch.placement);
            hash.write_usize(batch.long.len());
            batch.long.iter().chain(&batch.short).for_each(|v| hash.write_u64(v.to_bits()));
        }
        hash.finish()
    }

    /// Batch and round, long and short run, of every round.
    fn pairs(&self) -> impl Iterator<Item = ((usize, usize), (f64, f64))> {
        self.batches.iter().enumerate().flat_map(|(batch, own)| {
            let both = own.long.iter().copied().zip(own.short.iter().copied());
            both.enumerate().map(move |(round, pair)| ((batch, round), pair))
        })
    }

    /// All runs of a kind in some batches.
    fn rounds(&self, own: &dyn Fn(&Batch) -> bool, of: fn(&Batch) -> &[f64]) -> Vec<Run> {
        let numbered =
            |(i, batch)| of(batch).iter().enumerate().map(move |(n, cycles)| (*cycles, i, n));
        self.batches.iter().enumerate().filter(|(_, b)| own(b)).flat_map(numbered).collect()
    }

    fn median(&self, of: fn(&Batch) -> &[f64]) -> f64 {
        median(&self.rounds(&|_| true, of).iter().map(|r| r.0).collect::<Vec<_>>())
    }
}

fn long(batch: &Batch) -> &[f64] {
    &batch.long
}

fn short(batch: &Batch) -> &[f64] {
    &batch.short
}

impl FormTiming {
    fn find_states(&self) -> Pair {
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
