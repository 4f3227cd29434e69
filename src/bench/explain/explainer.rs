//! What explaining takes: a sandbox for variants, the analyser of dependencies, the core.

use crate::microbench::{Bench, Settings};
use crate::{Init, Measurement, Options, Progress};
use isa::code::Block;
use isa::deps::memory::InitialValues;
use isa::deps::{Analyser, Window};
use isa::latency::Latencies;
use std::sync::Arc;
use std::time::Duration;
use tma::Core;

/// Explains blocks, one after the other; keeps a sandbox for the variants.
pub struct Explainer {
    pub(super) bench: Bench,
    pub(super) analyser: Analyser,
    pub(super) core: Arc<Core>,
    pub(super) watch: Progress,
    /// What a measurement may wait for a calm core, and all of a list of changes together.
    pub(super) budget: Duration,
    /// Initial values that were asked for.
    pub(super) known: InitialValues,
}

/// What an explanation is made of besides the block.
pub(super) struct Subject<'a> {
    pub(super) block: &'a Block,
    pub(super) measurement: &'a Measurement,
}

impl Explainer {
    /// Measures variants as `options` say on their core, whose latencies these are.
    pub fn new(options: &Options, latencies: Latencies) -> Self {
        // What is compared differs by 5 % and more: half the samples do, and whether the block keeps the
        // assumptions was judged when it was measured.
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
            known: known(&options),
            watch: options.progress,
        }
    }

    /// Whoever holds `watch` may look on from now, and call the next explanation off: what was not
    /// measured by then is missing.
    pub fn set_progress(&mut self, watch: Progress) {
        self.bench.set_progress(watch.clone());
        self.watch = watch;
    }

    pub(super) fn window(&self) -> u32 {
        Window::of(&self.core).entries
    }
}

/// What was asked for of initial values.
fn known(options: &Options) -> InitialValues {
    let mut known = InitialValues::default();
    for (place, value) in &options.init {
        match place {
            Init::Register(number) => known.registers[usize::from(*number) & 15] = Some(*value),
            Init::Memory => known.fill = Some(*value),
            Init::Vector => {}
        }
    }
    known
}
