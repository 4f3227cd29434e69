//! Looking for values with which a block that runs stays in the L1 data cache.

use super::search::calmer;
use super::seek::{Seeker, Start};
use crate::initial::run_setup::Found;
use tma::Result;

/// A search that may cost less is a short one.
const SHORT: usize = 60;
/// Pages that it is content with: each costs a run.
const FEW: usize = 8;

impl Seeker<'_> {
    /// Values with which the block touches no more lines than can lie in the L1 data cache, if
    /// such are found.
    pub(super) fn calmed(&mut self, mut found: Found) -> Result<Found> {
        let whole = self.copies;
        let limit = self.options.physical_pages;
        if !self.may_search() || found.is_calm(limit) {
            return Ok(found);
        }
        if !self.last_stage && !found.is_stationary() {
            return Ok(found);
        }
        let (whole_budget, pages) = (self.options.value_search_budget, self.pages);
        let mut budget = whole_budget;
        'better: while budget > 0 && !found.is_calm(limit) {
            // More pages than now are no way to fewer; a short search is for what is calm at once.
            let short = whole_budget < SHORT;
            let most = if short { limit.min(FEW) } else { found.pages.len().max(limit) };
            self.pages = pages.min(most);
            let others =
                if budget == whole_budget { self.options.candidates() } else { Vec::new() };
            for values in others.into_iter().chain(calmer(self.block, &found.values)) {
                if budget == 0 {
                    break 'better;
                }
                let values = self.fixed(values);
                let start = Start { values, reseeded: found.reseeded.clone() };
                let tried = self.attempt(&start)?;
                budget = budget.saturating_sub(self.cost());
                if let Ok(other) = tried
                    && other.unrest() < found.unrest()
                {
                    found = other;
                    continue 'better;
                }
            }
            break;
        }
        (self.copies, self.pages) = (whole.min(found.copies), pages);
        if budget == whole_budget {
            return Ok(found);
        }
        let start = Start { values: found.values.clone(), reseeded: found.reseeded.clone() };
        Ok(self.attempt(&start)?.unwrap_or(found))
    }
}
