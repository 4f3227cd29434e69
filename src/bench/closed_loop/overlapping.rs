//! Executions of a captured loop back to back, so that they overlap as in a program that calls it again at once.

use super::captured::{Captured, run_once};
use crate::Snapshot;
use crate::harness::forms;
use crate::harness::program::{Program, Shape};
use crate::harness::region::Region;
use crate::harness::relaid::left_only_to;
use crate::runner::Runner;
use crate::sandbox::{Ended, layout as at};
use crate::timing::measure::{Form, repeated};
use tma::Result;

/// Most words that an execution may change; few of them may be needed for the next one to take the same path.
const MOST_WORDS: usize = 256;
/// Most words that are set before each execution.
const FEW_WORDS: usize = 4;

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
    ///
    /// # Errors
    /// The sandbox cannot be started.
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
        run_once(runner, &self.untimed(self.trips))?;
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
        let ended = run_once(runner, &program)?;
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

    #[test]
    fn only_needed_words_are_kept() {
        let all: Vec<u32> = (0..37).collect();
        let found = needed(all, |words| Ok([3, 17, 36].iter().all(|one| words.contains(one))));
        assert_eq!(found.unwrap(), [3, 17, 36]);
        // A run that fails by chance and then succeeds may leave none to choose from.
        assert!(needed(Vec::<u32>::new(), |_| Ok(true)).unwrap().is_empty());
    }
}
