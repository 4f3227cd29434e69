//! Samples of one form: the fastest state of its rounds, and whether it reproduces.
//!
//! Disturbances make a run slower: contention, code evicted from the op cache, a memory predictor in the
//! wrong state. Such states last for some rounds, a batch, or longer, so averages over them do not
//! reproduce. The headline is the fastest state that rounds of several batches share, for the long and
//! the short run separately; the others are reported as modes.

use super::state::{DOUBT, Nearness, Run, State, around, fastest, is_believed, usual};
use super::stats::{median, modes};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};

/// A state with less than this share of the rounds is rare.
const RARE: f64 = 0.25;

/// A result with a greater error than this share gets more passes.
const PRECISE: f64 = 0.01;
/// How much further differences of a state may lie apart than its runs: both runs have noise.
const WIDER: f64 = 1.5;
/// Batches that must agree where rounds do not.
const NARROW: usize = 8;
/// Rounds in which both runs must be in their fastest states.
const JOINT: usize = 2;
/// Share of the fastest rounds that must be in one state of a run.
const WHOLE: f64 = 0.75;

/// The states of the long and the short run, where there are any.
pub(super) type Pair = Option<(State, State)>;

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
    /// Whether the result is the usual difference of long and short runs instead of that of their fastest
    /// states: what a program's loop takes most of the time. Pairs of runs may be of different lengths.
    pub usual: bool,
    /// A hash of the batches in which states were found last, and these.
    pub(crate) found: RefCell<Option<(u64, Pair)>>,
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

    /// The differences of long and short run of the rounds in the fastest state. What slows both runs of a
    /// round alike cancels in them, but not between the means of the two states, which are of different rounds.
    fn differences(&self) -> Option<State> {
        let (long, short) = self.states().filter(|_| !self.usual)?;
        let near = Nearness { share: self.tolerance, step: self.step };
        let width = WIDER * (near.above(long.mean) - long.mean);
        around(self.all_differences(), self.batches.len(), (long.mean - short.mean, width))
    }

    fn all_differences(&self) -> Vec<Run> {
        self.pairs().map(|((batch, round), (long, short))| (long - short, batch, round)).collect()
    }

    /// Two standard errors to either side, of the fastest state and of the differences in it, extended to faster
    /// states too rare to be trusted; the range of all batches if they share no state.
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

    /// Whether both runs have a fastest state, and none faster, if seldom met, would change the
    /// result by much; or whether they have none and all batches lie close together nevertheless.
    pub fn is_reproduced(&self) -> bool {
        let Some((long, short)) = self.states() else { return self.is_narrow() };
        let cycles = (long.mean - short.mean) / self.between;
        let (low, high) = self.doubt(&long, &short);
        let near = (DOUBT * cycles).max(self.tolerance * long.mean / self.between);
        cycles > 0.0 && high - cycles <= near && cycles - low <= near
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

    /// The fastest state of the long and that of the short run, if there are rounds in which both
    /// were in theirs. Otherwise the two are alternatives, and their difference would be a number that
    /// no round gave: then those of the fastest rounds.
    fn states(&self) -> Option<(State, State)> {
        // Cached: several methods need the states of the same batches.
        let mark = self.mark();
        if let Some((known, states)) = &*self.found.borrow()
            && *known == mark
        {
            return states.clone();
        }
        let states = self.find_states();
        *self.found.borrow_mut() = Some((mark, states.clone()));
        states
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

    fn find_states(&self) -> Option<(State, State)> {
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

    /// The states of the placements whose long runs are the fastest, together: ends of loops cost more
    /// or less by placement, which cancels only between the long and the short run of the same one.
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

    /// The state of the rounds that take the least for long and short run together, if it is one of
    /// both.
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

    /// The same of some batches.
    fn pairs_of<'a>(
        &'a self,
        own: &'a dyn Fn(&Batch) -> bool,
    ) -> impl Iterator<Item = ((usize, usize), (f64, f64))> + 'a {
        self.pairs().filter(move |((batch, _), _)| own(&self.batches[*batch]))
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

    /// The fastest state of some runs, which are of some batches.
    fn fastest(&self, runs: Vec<Run>, own: &dyn Fn(&Batch) -> bool) -> Option<State> {
        let near = Nearness { share: self.tolerance, step: self.step };
        fastest(runs, self.batches.iter().filter(|b| own(b)).count(), near)
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
    fn timed(pairs: &[(f64, f64)]) -> FormTiming {
        let of = |v: f64| vec![v; 4];
        let batches = pairs.iter().map(|(long, short)| Batch {
            placement: 0,
            long: of(*long),
            short: of(*short),
        });
        FormTiming {
            tolerance: 0.008,
            between: 1000.0,
            batches: batches.collect(),
            ..FormTiming::default()
        }
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
        // The mean of 1,000, 1,001, 999 and 1,002 cycles.
        assert!((t.cycles().unwrap() - 1.0005).abs() < 1e-9);
        let (low, high) = t.range().unwrap();
        assert!(low < 1.0 && 1.0 < high && high - low < 0.01);
        // As cycles of a round: 1, 1.21 and 1.4.
        assert_eq!(t.modes().len(), 3);
    }

    /// Three calibrations with an error of 0.3 % each: 0.3 / √3 of the result, twice that to each side.
    #[test]
    fn the_error_of_the_clock_widens_the_range() {
        let t = FormTiming { clock_errors: vec![0.003; 3], ..timed(&[(2000.0, 1000.0); 4]) };
        let (low, high) = t.range().unwrap();
        let error = 2.0 * 0.003 / 3.0f64.sqrt();
        assert!((low - (1.0 - error)).abs() < 1e-9 && (high - (1.0 + error)).abs() < 1e-9);
    }

    /// Rounds slowed by 0 to 48 cycles, each both of its runs: every difference is 1,000.
    #[test]
    fn what_slows_both_runs_of_a_round_cancels() {
        let mut t = timed(&[(2000.0, 1000.0); 6]);
        for (i, batch) in t.batches.iter_mut().enumerate() {
            let slow = |n: usize| (12 * ((n + i) % 5)) as f64;
            batch.long = (0..16).map(|n| 2000.0 + slow(n)).collect();
            batch.short = (0..16).map(|n| 1000.0 + slow(n)).collect();
        }
        assert!(t.is_reproduced());
        assert!((t.cycles().unwrap() - 1.0).abs() < 1e-9, "{:?}", t.cycles());
    }

    /// Some long runs are faster than twice the short one: the state that no whole run was in.
    #[test]
    fn the_usual_state_is_that_of_most_rounds() {
        let mut t = timed(&[(3800.0, 2000.0); 6]);
        for batch in &mut t.batches {
            batch.long[1] = 2260.0;
        }
        t.usual = true;
        assert!(t.is_reproduced() && (t.cycles().unwrap() - 1.8).abs() < 1e-9, "{:?}", t.cycles());
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
            let fast = 2000.0 + 2.5 * (i % 2) as f64;
            batch.long = [fast, 2402.5, fast, 2498.0].to_vec();
        }
        t.batches[0].long[3] = 1975.0;
        t.batches[1].long[3] = 1700.0;
        assert!(t.is_reproduced());
        assert!((t.cycles().unwrap() - 1.001_25).abs() < 1e-9, "{:?}", t.cycles());
        // Not reproduced where they are all of one batch.
        let mut one =
            timed(&[(2500.0, 1000.0), (2600.0, 1000.0), (2700.0, 1000.0), (2800.0, 1000.0)]);
        one.batches[0].long = vec![2000.0; 16];
        assert!(!one.is_reproduced());
    }

    /// The long run is fast where the short one is slow and the other way round: by hand, the
    /// fastest states by themselves give (2000 − 1000) / 1000 = 1, which no round took; the batches
    /// take 0.8 and 1.3.
    #[test]
    fn the_result_is_one_that_rounds_gave() {
        let t = timed(&[
            (2000.0, 1200.0),
            (2300.0, 1000.0),
            (2001.0, 1201.0),
            (2301.0, 1001.0),
            (1999.0, 1199.0),
            (2299.0, 999.0),
        ]);
        let (low, high) = t.batch_range().unwrap();
        let cycles = t.cycles().unwrap();
        assert!((low, high) == (0.8, 1.3) && (cycles - 0.8).abs() < 1e-9, "{cycles}");
        // Of equally fast rounds of two kinds neither is the result: not reproduced.
        let mixed =
            timed(&[(2000.0, 1200.0), (2200.0, 1000.0), (2001.0, 1201.0), (2201.0, 1001.0)]);
        assert!(!mixed.is_reproduced());
    }

    /// Medians of batches from 1 to 1.09, no two rounds of which are alike: all that is known is that
    /// the block takes that.
    #[test]
    fn batches_close_together_are_a_result_with_a_wide_range() {
        let apart = |between: f64| {
            let long = |i: usize| 2000.0 + 1000.0 * between * i as f64 / 7.0;
            timed(&(0..8).map(|i| (long(i), 1000.0 + 7.0 * (i % 2) as f64)).collect::<Vec<_>>())
        };
        let mut close = apart(0.09);
        close.batches.iter_mut().for_each(|b| b.long.truncate(1));
        close.batches.iter_mut().for_each(|b| b.short.truncate(1));
        assert!(close.agreeing() == (0, 0) && close.is_reproduced());
        let ((low, high), cycles) = (close.range().unwrap(), close.cycles().unwrap());
        assert!(low < 1.0 + 1e-9 && high > 1.08 && low < cycles && cycles < high);
        let mut wide = apart(0.2);
        wide.batches.iter_mut().for_each(|b| b.long.truncate(1));
        wide.batches.iter_mut().for_each(|b| b.short.truncate(1));
        assert!(!wide.is_reproduced());
    }

    #[test]
    fn batches_that_never_agree_are_not_reproduced() {
        let t = timed(&[(2000.0, 1000.0), (2100.0, 1000.0), (2200.0, 1000.0), (2300.0, 1000.0)]);
        assert!(!t.is_reproduced());
        assert_eq!(t.range(), Some((1.0, 1.3)));
    }
}
