//! How thoroughly to measure.

use super::values::Values;

/// Everything that can be chosen about a measurement.
#[derive(Debug, Clone)]
pub struct Options {
    /// Passes over all placements, apart in time.
    pub passes: usize,
    /// Placements of the code.
    pub placements: usize,
    /// Rounds (samples) for each placement and pass.
    pub rounds: usize,
    /// How often a pass may be repeated because the core was shared.
    pub retries: usize,
    /// How long a block may wait for a core that nothing else uses.
    pub budget: std::time::Duration,
    /// Whether to measure, too, what explains the number: bounds, and what subnormals would cost.
    pub explain: bool,
    /// Whether the loop form is measured too.
    pub loop_form: bool,
    /// Distinct physical pages.
    pub physical_pages: usize,
    /// Pages that a block may touch.
    pub page_limit: usize,
    /// How many sets of initial values are tried.
    pub value_sets: usize,
    /// Whether address registers that a copy overwrites may be set again before the next.
    pub reseed: bool,
    /// These initial values and no others.
    pub values: Option<Values>,
    /// Processor to measure on; wherever the scheduler likes otherwise.
    pub cpu: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            passes: 3,
            placements: 4,
            rounds: 16,
            retries: 3,
            budget: std::time::Duration::from_secs(5),
            explain: true,
            loop_form: true,
            physical_pages: 16,
            page_limit: 256,
            value_sets: 16,
            reseed: true,
            values: None,
            cpu: None,
        }
    }
}

impl Options {
    /// Screening: one pass, 16 samples, no loop form.
    pub fn quick() -> Self {
        Self {
            passes: 1,
            placements: 2,
            rounds: 8,
            retries: 1,
            explain: false,
            loop_form: false,
            ..Self::default()
        }
    }

    /// 5 passes over 6 placements.
    pub fn thorough() -> Self {
        Self { passes: 5, placements: 6, rounds: 40, retries: 6, ..Self::default() }
    }

    /// The configuration of the BHive paper: one physical page, one value set, plain unrolling.
    #[must_use]
    pub fn bhive(self) -> Self {
        Self { physical_pages: 1, value_sets: 1, reseed: false, loop_form: false, ..self }
    }
}
