//! The explainer: a sandbox for variants, the dependency analyser, the core.

use crate::microbench::{Bench, Settings};
use crate::{Init, Measurement, Options, Progress};
use isa::code::Block;
use isa::deps::memory::InitialValues;
use isa::deps::{Analyser, Window};
use isa::latency::Latencies;
use std::sync::Arc;
use std::time::Duration;
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
