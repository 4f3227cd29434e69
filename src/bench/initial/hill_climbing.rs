//! Hill climbing over initial values: from the run that got furthest, changes one input of the failing instruction
//! at a time.

use super::proposals::{STEP, influences, proposals, solve_linear};
use super::value_search::writes;
use super::value_search::{Candidate, FailedRun, MIN_COPIES, ValueSearch};
use crate::initial::run_setup::RunSetup;
use tma::Result;

/// Budget of one search, in runs; a run with many pages counts as several. Not in time, since the same block must
/// get the same values each time.
const BUDGET: usize = 400;

impl ValueSearch<'_> {
    /// Tries one change after the other from the run that got furthest, and continues from the
    /// first that gets further. With `reseed`, registers may be reinitialised before every copy.
    pub(super) fn hill_climb(&mut self, reseed: bool) -> Result<Option<RunSetup>> {
        let Some(mut from) = self.best_failure.clone() else { return Ok(None) };
        let mut budget = BUDGET;
        'hill_climb: while let Some(position) = from.failure.position() {
            for step in self.candidates(&from, position, reseed, &mut budget)? {
                if budget == 0 || self.is_hopeless() {
                    break 'hill_climb;
                }
                let step = Candidate { values: self.with_user_values(step.values), ..step };
                let outcome = self.traced_run(&step)?;
                budget = budget.saturating_sub(self.run_cost());
                match outcome {
                    Ok(setup) => return Ok(Some(setup)),
                    Err(failed) if failed.failure.position() > Some(position) => {
                        from = failed;
                        continue 'hill_climb;
                    }
                    Err(_) => {}
                }
            }
            break;
        }
        Ok(None)
    }

    /// The candidates one change away from `from`, the likeliest first.
    pub(super) fn candidates(
        &mut self,
        from: &FailedRun,
        position: (usize, usize),
        reseed: bool,
        budget: &mut usize,
    ) -> Result<Vec<Candidate>> {
        let influences = influences(self.block, position.1);
        let mut candidates = Vec::new();
        if reseed && position.0 > 0 {
            for register in &influences.registers {
                let mut start = from.start.clone();
                if writes(self.block, *register) && !start.reseeded.contains(register) {
                    start.reseeded.push(*register);
                    candidates.push(start);
                }
            }
        }
        let aligned = from.may_be_misaligned;
        let values = proposals(&from.start.values, &influences, &from.touched, aligned);
        candidates
            .extend(values.into_iter().map(|values| Candidate { values, ..from.start.clone() }));
        // The slope of the failing address over each register predicts values that can be mapped.
        let Some(before) = from.touched.first().map(|t| t.0) else { return Ok(candidates) };
        let mut by_slope = Vec::new();
        for register in influences.registers.iter().take(6) {
            let number = usize::from(*register);
            let mut start = from.start.clone();
            start.values.registers[number] = start.values.registers[number].wrapping_add(STEP);
            let moved = self.traced_run(&start)?;
            *budget = budget.saturating_sub(self.run_cost());
            let Err(moved) = moved else { return Ok(vec![start]) };
            let same = moved.failure.position() == Some(position);
            let Some(after) = moved.touched.first().map(|t| t.0).filter(|_| same) else { continue };
            for value in solve_linear(from.start.values.registers[number], before, after) {
                let mut start = from.start.clone();
                start.values.registers[number] = value;
                by_slope.push(start);
            }
        }
        by_slope.extend(candidates);
        Ok(by_slope)
    }

    /// Cost of the last run, in runs: every page that it mapped restarted it.
    pub(super) fn run_cost(&self) -> usize {
        1 + self.mapped / 8
    }

    /// Retries with only as many copies as ran before the failure, if those are enough.
    pub(super) fn fewer_copies(&mut self) -> Result<Option<RunSetup>> {
        let Some(best) = self.best_failure.clone() else { return Ok(None) };
        let whole = self.copies;
        self.copies = best.failure.copy.unwrap_or(0) & !1;
        if self.copies >= MIN_COPIES.min(whole / 2).max(2)
            && let Ok(setup) = self.traced_run(&best.start)?
        {
            return Ok(Some(setup));
        }
        self.copies = whole;
        Ok(None)
    }
}
