//! Searches for values with which a runnable block stays within the L1 data cache.

use super::proposals::smaller_strides;
use super::value_search::{Candidate, ValueSearch};
use crate::initial::run_setup::RunSetup;
use tma::Result;

/// A search with a smaller budget is a short one.
const SHORT_BUDGET: usize = 60;
/// Most pages of a run in a short search: every page costs a run.
const SHORT_PAGES: usize = 8;

impl ValueSearch<'_> {
    /// A setup whose lines all fit the L1 data cache, if one is found; else the best.
    pub(super) fn fit_into_l1(&mut self, mut setup: RunSetup) -> Result<RunSetup> {
        let whole = self.copies;
        let limit = self.options.physical_pages;
        if !self.may_search() || setup.fits_l1_data(limit) {
            return Ok(setup);
        }
        if !self.is_last_stage && !setup.is_stationary() {
            return Ok(setup);
        }
        let (whole_budget, pages) = (self.options.value_search_budget, self.pages);
        let mut budget = whole_budget;
        'better: while budget > 0 && !setup.fits_l1_data(limit) {
            // A candidate with more pages than now is no improvement; a short search accepts only
            // candidates that fit at once.
            let short = whole_budget < SHORT_BUDGET;
            let most = if short { limit.min(SHORT_PAGES) } else { setup.pages.len().max(limit) };
            self.pages = pages.min(most);
            let others =
                if budget == whole_budget { self.options.candidates() } else { Vec::new() };
            for values in others.into_iter().chain(smaller_strides(self.block, &setup.values)) {
                if budget == 0 || self.is_hopeless() {
                    break 'better;
                }
                let values = self.with_user_values(values);
                let start = Candidate { values, reseeded: setup.reseeded.clone() };
                let outcome = self.traced_run(&start)?;
                budget = budget.saturating_sub(self.run_cost());
                if let Ok(other) = outcome
                    && other.cache_footprint() < setup.cache_footprint()
                {
                    setup = other;
                    continue 'better;
                }
            }
            break;
        }
        (self.copies, self.pages) = (whole.min(setup.copies), pages);
        if budget == whole_budget {
            return Ok(setup);
        }
        self.run_again(setup)
    }
}
