//! Looking for values step by step: from the attempt that got furthest, one change after the other
//! of what reaches the failing instruction.

use super::search::{NUDGE, influences, proposals, solved};
use super::seek::writes;
use super::seek::{ENOUGH, Seeker, Start, Tried};
use crate::initial::run_setup::Found;
use tma::Result;

/// What a search for values may cost, without and with registers set again: in runs, those with
/// many pages counted more. Not in time, since the same block must find the same values each time.
const BUDGET: usize = 400;

impl Seeker<'_> {
    /// From the attempt that got furthest, changes one thing after the other that reaches the
    /// failing instruction, and keeps what gets further.
    pub(super) fn climb(&mut self, reseed: bool) -> Result<Option<Found>> {
        let Some(mut here) = self.best.clone() else { return Ok(None) };
        let mut budget = BUDGET;
        'climb: while let Some(place) = here.failure.place() {
            for step in self.steps(&here, place, reseed, &mut budget)? {
                if budget == 0 {
                    break 'climb;
                }
                let step = Start { values: self.fixed(step.values), ..step };
                let tried = self.attempt(&step)?;
                budget = budget.saturating_sub(self.cost());
                match tried {
                    Ok(found) => return Ok(Some(found)),
                    Err(tried) if tried.failure.place() > Some(place) => {
                        here = tried;
                        continue 'climb;
                    }
                    Err(_) => {}
                }
            }
            break;
        }
        Ok(None)
    }

    /// What to try from `here`.
    pub(super) fn steps(
        &mut self,
        here: &Tried,
        place: (usize, usize),
        reseed: bool,
        budget: &mut usize,
    ) -> Result<Vec<Start>> {
        let influences = influences(self.block, place.1);
        let mut steps = Vec::new();
        if reseed && place.0 > 0 {
            for register in &influences.registers {
                let mut start = here.start.clone();
                if writes(self.block, *register) && !start.reseeded.contains(register) {
                    start.reseeded.push(*register);
                    steps.push(start);
                }
            }
        }
        let aligned = here.alignment;
        let values = proposals(&here.start.values, &influences, &here.touched, aligned);
        steps.extend(values.into_iter().map(|values| Start { values, ..here.start.clone() }));
        // Which way does the failing address go when a register is moved a little?
        let Some(before) = here.touched.first().map(|t| t.0) else { return Ok(steps) };
        let mut by_slope = Vec::new();
        for register in influences.registers.iter().take(6) {
            let number = usize::from(*register);
            let mut start = here.start.clone();
            start.values.registers[number] = start.values.registers[number].wrapping_add(NUDGE);
            let moved = self.attempt(&start)?;
            *budget = budget.saturating_sub(self.cost());
            let Err(moved) = moved else { return Ok(vec![start]) };
            let same = moved.failure.place() == Some(place);
            let Some(after) = moved.touched.first().map(|t| t.0).filter(|_| same) else { continue };
            for value in solved(here.start.values.registers[number], before, after) {
                let mut start = here.start.clone();
                start.values.registers[number] = value;
                by_slope.push(start);
            }
        }
        by_slope.extend(steps);
        Ok(by_slope)
    }

    /// What the last run cost: every page it mapped made it start again.
    pub(super) fn cost(&self) -> usize {
        1 + self.runner.pages().map_or(0, |pages| pages.len()) / 8
    }

    /// As many copies as ran, if those are enough.
    pub(super) fn fewer_copies(&mut self) -> Result<Option<Found>> {
        let Some(best) = self.best.clone() else { return Ok(None) };
        let whole = self.copies;
        self.copies = best.failure.copy.unwrap_or(0) & !1;
        if self.copies >= ENOUGH.min(whole / 2).max(2)
            && let Ok(found) = self.attempt(&best.start)?
        {
            return Ok(Some(found));
        }
        self.copies = whole;
        Ok(None)
    }
}
