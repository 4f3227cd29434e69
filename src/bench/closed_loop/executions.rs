//! Measures several executions of a program's loop: each in isolation, with their mean and the cost of entering and
//! leaving; or back to back, so that they overlap as in a program that calls the loop again at once.

use super::captured::Captured;
use crate::Snapshot;
use crate::harness::region::Region;
use crate::harness::relaid::left_only_to;
use crate::harness::{Program, Shape, forms};
use crate::measurement::{Execution, Throughput};
use crate::runner::Runner;
use crate::sandbox::{Ended, layout as at};
use crate::timing::form_timing::FormTiming;
use crate::timing::measure::{Form, repeated};
use tma::Result;

/// Approximate cycles of start and end of an isolated execution with a predicted exit: loops of 1 to 16 iterations
/// read 4 to 15 cycles an execution more than in their programs (measured when this was written, on one
/// processor), where other code overlaps both.
const ENTRY: f64 = 10.0;
/// The note appears if start and end take this share of the time or more.
const NOTABLE: f64 = 0.1;

/// Most words that an execution may change; few of them may be needed for the next one to take the same path.
const MOST_WORDS: usize = 256;
/// Most words that are set before each execution.
const FEW_WORDS: usize = 4;

/// An execution by its samples; `None` if they do not agree.
pub(super) fn execution(iterations: u64, timed: &FormTiming) -> Option<Execution> {
    let (cycles, (low, high)) = (timed.cycles()?, timed.range()?);
    timed.is_reproduced().then_some(Execution { iterations, cycles, low, high })
}

/// The mean over all iterations.
fn mean(all: &[Execution], of: impl Fn(&Execution) -> f64) -> f64 {
    let iterations: f64 = all.iter().map(|one| one.iterations as f64).sum();
    all.iter().map(|one| of(one) * one.iterations as f64).sum::<f64>() / iterations
}

/// Replaces a throughput by the mean of all executions; the range covers the executions and their samples.
pub(super) fn combine(all: &[Execution], throughput: &mut Throughput) {
    if all.len() > 1 {
        throughput.cycles = mean(all, |one| one.cycles);
        throughput.low = all.iter().map(|one| one.low).fold(f64::INFINITY, f64::min);
        throughput.high = all.iter().map(|one| one.high).fold(0.0, f64::max);
    }
}

/// The number of executions, how they differ, why others were not measured, and the cost of an entry if they ran
/// to their ends without overlap.
pub(super) fn words(
    all: &[Execution],
    dropped: &[String],
    is_whole: bool,
    overlap: bool,
) -> String {
    let captured = all.len() + dropped.len();
    let mut text = String::new();
    if all.len() > 1 {
        let of = |f: fn(f64, f64) -> f64, start| all.iter().map(|one| one.cycles).fold(start, f);
        text = format!(
            "; mean of {} executions of {captured} captured{}: {:.2} to {:.2} cycles an iteration",
            all.len(),
            if overlap { "" } else { ", each measured in isolation" },
            of(f64::min, f64::INFINITY),
            of(f64::max, 0.0)
        );
    }
    for (n, why) in dropped.iter().enumerate().filter(|_| captured > 1) {
        let is_first = !dropped[..n].contains(why);
        let count = dropped.iter().filter(|other| *other == why).count();
        if is_first {
            text += &format!("; {count} of {captured} executions not measured: {why}");
        }
    }
    if !all.is_empty() && is_whole && !overlap {
        let trips = all.iter().map(|one| one.iterations as f64).sum::<f64>() / all.len() as f64;
        let (cost, is_known) = entry(all).map_or((ENTRY, false), |cost| (cost, true));
        let share = cost / (trips * mean(all, |one| one.cycles));
        if share >= NOTABLE {
            let how = if is_known { "by executions of different length" } else { "typically" };
            text += &format!(
                "; {trips:.1} iterations an execution: its start and end, {cost:.0} cycles {how}, are \
                 {:.0} % of it; in the program they overlap with other code",
                100.0 * share.min(1.0)
            );
        }
    }
    text
}

/// Cycles of an execution without iterations, by the regression of cycles over iterations; `None` if the lengths
/// differ too little.
fn entry(all: &[Execution]) -> Option<f64> {
    let count = all.len() as f64;
    let points =
        || all.iter().map(|one| (one.iterations as f64, one.cycles * one.iterations as f64));
    let (x, y) =
        points().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (above, below) = points().fold((0.0, 0.0), |(above, below), point| {
        (above + (point.0 - x) * (point.1 - y), below + (point.0 - x).powi(2))
    });
    // At least two lengths that differ by half.
    let (most, least) =
        (all.iter().map(|one| one.iterations).max()?, all.iter().map(|one| one.iterations).min()?);
    (all.len() > 2 && 2 * most >= 3 * least).then(|| (y - above / below * x).max(0.0))
}

/// Executions back to back.
pub(super) struct Overlapping {
    /// The code, which traps if it leaves the program's path.
    region: Region,
    /// Addresses and values of the words that are set before each execution.
    words: Vec<(u64, u64)>,
}

impl Captured {
    /// Executions back to back; `None` if they do not take the path of this one in the program, or if it was not
    /// followed to its end.
    pub fn overlapping(
        &self,
        runner: &mut Runner,
        snapshot: &Snapshot,
    ) -> Result<Option<Overlapping>> {
        let is_followed = self.bounded.is_none() && self.trips <= snapshot.stepped + 1;
        let Some(to) = snapshot.left_to.filter(|_| is_followed && snapshot.before_call.is_none())
        else {
            return Ok(None);
        };
        let once = self.trips == 1;
        let Ok(region) = left_only_to(&snapshot.executed, snapshot.address, to, once) else {
            return Ok(None);
        };
        let mut found = Overlapping { region, words: Vec::new() };
        if self.repeats(runner, snapshot, &found)? {
            return Ok(Some(found));
        }
        // A word that it changes, such as a count in memory, may decide where it ends.
        self.again(runner, snapshot)?;
        runner.run_once(&self.untimed(self.trips))?;
        // In the order of this run.
        let pages = runner.pages().unwrap_or_default();
        found.words = runner.changed_words(&pages, self.values.memory, at::PHYSICAL_MAX);
        if found.words.len() > MOST_WORDS || !self.repeats(runner, snapshot, &found)? {
            return Ok(None);
        }
        let words = std::mem::take(&mut found.words);
        found.words = needed(words, |words| {
            found.words = words.to_vec();
            self.repeats(runner, snapshot, &found)
        })?;
        // The last attempt may have left another state.
        self.again(runner, snapshot)?;
        Ok(Some(found).filter(|found| found.words.len() <= FEW_WORDS))
    }

    /// Whether all executions back to back take the same path.
    fn repeats(
        &self,
        runner: &mut Runner,
        snapshot: &Snapshot,
        found: &Overlapping,
    ) -> Result<bool> {
        self.again(runner, snapshot)?;
        let program = self.overlapped(&self.shape(), found, false);
        if program.end() > at::CODE + at::CODE_SIZE {
            return Ok(false);
        }
        let ended = runner.run_once(&program)?;
        let known = |pages: Vec<u64>| pages.iter().all(|page| self.images.contains(page));
        Ok(ended == Ended::Done && runner.pages().is_some_and(known))
    }

    /// Prepares another run, whatever the last one left.
    fn again(&self, runner: &mut Runner, snapshot: &Snapshot) -> Result<()> {
        self.set_values(runner, snapshot)?;
        runner.lines(&self.lines)
    }

    fn overlapped(&self, shape: &Shape<'_>, found: &Overlapping, timed: bool) -> Program {
        let rip = |target| self.rip(target);
        let registers = &self.values.registers;
        forms::back_to_back(shape, &found.region, &rip, registers, &found.words, timed)
    }

    /// Such executions, `count` against half as many.
    pub fn back_to_back(&self, found: &Overlapping, placements: usize, count: u32) -> Form {
        let build = |shape: &Shape<'_>| self.overlapped(shape, found, true);
        repeated(&self.shape(), &build, placements, self.trips as f64, count)
    }
}

/// The elements of `all` without which it does not work, found by leaving out halves, quarters and so on.
///
/// # Errors
/// As `works`.
fn needed<T: Clone>(all: Vec<T>, mut works: impl FnMut(&[T]) -> Result<bool>) -> Result<Vec<T>> {
    let mut kept = all;
    let mut size = kept.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < kept.len() {
            let end = (from + size).min(kept.len());
            let fewer = [&kept[..from], &kept[end..]].concat();
            if works(&fewer)? {
                kept = fewer;
            } else {
                from = end;
            }
        }
        size /= 2;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(iterations: u64, cycles: f64) -> Execution {
        Execution { iterations, cycles, low: cycles, high: cycles }
    }

    /// By hand: 40 cycles and 10 for each iteration.
    #[test]
    fn long_executions_count_more_and_tell_the_cost_of_an_entry() {
        let all = [of(4, 20.0), of(8, 15.0), of(2, 30.0)];
        let mut throughput =
            Throughput { cycles: 20.0, low: 20.0, high: 20.0, modes: Vec::new(), clock: "tsc" };
        combine(&all, &mut throughput);
        // (80 + 120 + 60) / 14
        assert!((throughput.cycles - 18.571).abs() < 0.001, "{throughput:?}");
        assert!((entry(&all).unwrap() - 40.0).abs() < 1e-9);
        assert_eq!((throughput.low, throughput.high), (15.0, 30.0));
        let text = words(&all, &["it does not come to an end".to_owned()], true, false);
        assert!(
            text.contains("3 executions of 4 captured") && text.contains("40 cycles"),
            "{text}"
        );
        assert!(text.contains("1 of 4 executions not measured: it does not come"), "{text}");
        assert!(text.contains("46 %"), "{text}");
    }

    #[test]
    fn a_long_execution_needs_no_note() {
        assert_eq!(words(&[of(1000, 5.0)], &[], true, false), "");
        assert!(words(&[of(3, 5.0)], &[], true, false).contains("typically"));
        assert_eq!(words(&[of(3, 5.0)], &[], false, false), "");
    }

    #[test]
    fn only_needed_words_are_kept() {
        let all: Vec<u32> = (0..37).collect();
        let found = needed(all, |words| Ok([3, 17, 36].iter().all(|one| words.contains(one))));
        assert_eq!(found.unwrap(), [3, 17, 36]);
        // A run that fails by chance and then succeeds may leave none to choose from.
        assert!(needed(Vec::<u32>::new(), |_| Ok(true)).unwrap().is_empty());
    }
}
