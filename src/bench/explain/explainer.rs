//! The explainer: a sandbox for variants, the time it may wait, and its findings on a block.

use super::model::Evidence;
use crate::measurement::Bound;
use crate::microbench::{Bench, Settings};
use crate::{Init, Measurement, Options, Progress};
use isa::code::Block;
use isa::deps::memory::InitialValues;
use isa::deps::{Analyser, Analysis, Code, Window};
use isa::latency::Latencies;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tma::Core;

/// Explains blocks, one after the other, with one sandbox for all their variants.
pub struct Explainer {
    pub(super) bench: Bench,
    pub(super) analyser: Analyser,
    pub(super) core: Arc<Core>,
    pub(super) progress: Progress,
    /// Whether subnormals are computed exactly.
    pub(super) gradual_underflow: bool,
    /// Wait limit for an uncontended core, for a measurement or for all what-if measurements in total.
    pub(super) budget: Duration,
    /// Time limit of an explanation in total, and of its what-if measurements in total.
    pub(super) longest: Duration,
    /// Initial values set by the user.
    pub(super) user_values: InitialValues,
}

/// The block to explain, without a final jump, and its measurement.
pub(super) struct Subject<'a> {
    pub(super) block: &'a Block,
    pub(super) measurement: &'a Measurement,
    /// The measurement with its final jump, if that was run as a loop: its time is explained.
    pub(super) looped: Option<&'a Measurement>,
}

impl Explainer {
    /// An explainer that measures variants with `options` and computes with `latencies` of the same
    /// core.
    pub fn new(options: &Options, latencies: Latencies) -> Self {
        // Differences of less than 5 % do not matter here: half the samples suffice. The assumptions
        // were checked when the block was measured.
        let options = Options {
            explain: false,
            loop_form: false,
            counts: false,
            assumptions: false,
            ..options.clone()
        };
        let measures = options.passes * options.placements * options.rounds / 2;
        let settings = Settings { measures, total_insn: 0, ..Settings::default() };
        Self {
            bench: Bench::new(options.clone(), settings),
            analyser: Analyser::new(latencies),
            core: options.core.clone(),
            budget: options.budget,
            longest: options.longest(),
            user_values: user_values(&options),
            gradual_underflow: options.gradual_underflow,
            progress: options.progress,
        }
    }

    /// Reports to `progress` from now on, which can also cancel the next explanation: variants not yet
    /// measured are then missing.
    pub fn set_progress(&mut self, progress: Progress) {
        self.bench.set_progress(progress.clone());
        self.progress = progress;
    }

    pub(super) fn window(&self) -> u32 {
        Window::of(&self.core).entries
    }
}

/// Initial values set by the user.
fn user_values(options: &Options) -> InitialValues {
    let mut values = InitialValues::default();
    for (place, value) in &options.init {
        match place {
            Init::Register(number) => values.registers[usize::from(*number) & 15] = Some(*value),
            Init::Memory => values.fill = Some(*value),
            Init::Vector => {}
        }
    }
    values
}

/// Time left for waiting. A measurement's time beyond the shortest successful one counts as waiting,
/// an unsuccessful one's entire time.
pub struct WaitBudget {
    left: Duration,
    shortest: Option<Duration>,
}

impl WaitBudget {
    /// The whole of `budget`.
    pub fn of(budget: Duration) -> Self {
        Self { left: budget, shortest: None }
    }

    /// The remaining time.
    pub fn left(&self) -> Duration {
        self.left
    }

    /// Subtracts what a measurement begun at `start` spent waiting.
    pub fn spend(&mut self, start: Instant, succeeded: bool) {
        self.took(start.elapsed(), succeeded);
    }

    fn took(&mut self, took: Duration, succeeded: bool) {
        if succeeded {
            self.shortest = Some(self.shortest.map_or(took, |shortest| shortest.min(took)));
        }
        let needed = if succeeded { self.shortest.unwrap_or(took) } else { Duration::ZERO };
        self.left = self.left.saturating_sub(took.saturating_sub(needed));
    }
}

/// The findings, for the verdict and the document.
pub struct Findings {
    /// Input of the verdict.
    pub evidence: Evidence,
    /// Bounds measured or computed by the explanation.
    pub bounds: Vec<Bound>,
    /// Dependencies of the block as it was measured.
    pub analysis: Analysis,
    /// Its instructions.
    pub code: Code,
    /// The form whose time is explained.
    pub form: &'static str,
    /// Failed measurements, and why.
    pub missing: Vec<String>,
}

impl Findings {
    /// Drops evidence of copies on memory dependencies that the loop does not have.
    pub(super) fn drop_copies_that_are_not_the_loop(&mut self, forwards: Option<bool>) {
        if self.evidence.copies_are_not_the_loop(forwards) {
            (self.evidence.memory_broken, self.evidence.memory_control) = (None, None);
            let why = "straight copies wait for stores, the loop does not";
            self.missing.push(format!("memory dependencies broken: {why}"));
        }
    }
}

#[cfg(test)]
impl Findings {
    /// Findings without any measurement.
    pub fn without_evidence(analysis: Analysis, code: Code) -> Self {
        Self {
            evidence: Evidence::default(),
            bounds: Vec::new(),
            analysis,
            code,
            form: "unrolled",
            missing: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_beyond_the_shortest_success_counts_as_waiting() {
        let seconds = Duration::from_secs;
        let mut wait_budget = WaitBudget::of(seconds(5));
        wait_budget.took(seconds(1), true);
        assert_eq!(wait_budget.left(), seconds(5));
        wait_budget.took(seconds(2), true);
        assert_eq!(wait_budget.left(), seconds(4));
        wait_budget.took(seconds(3), false);
        wait_budget.took(seconds(3), false);
        assert_eq!(wait_budget.left(), Duration::ZERO);
    }
}
