//! From a block's instructions to what is said about it: measured, explained.

use crate::known::Known;
use bench::explain::Explainer;
use bench::{Measurement, Options, Profiler, Progress};
use isa::code::Block;
use tma::Result;

/// Measures and explains blocks, one after the other, in sandboxes that it keeps. Belongs to its
/// thread.
pub struct Measurer {
    profiler: Profiler,
    explainer: Option<Explainer>,
    notes: Vec<String>,
}

impl Measurer {
    /// A measurer on the core that is `known`; it explains where `options` ask for that.
    pub fn new(options: Options, known: &Known) -> Self {
        let options = Options { core: known.core.clone(), ..options };
        let explain = || Explainer::new(&options, known.latencies.clone());
        let explainer = options.explain.then(explain);
        let mut notes: Vec<String> = known.core.warning().into_iter().collect();
        notes.extend(known.notes.iter().cloned());
        Self { profiler: Profiler::new(options), explainer, notes }
    }

    /// Measures `block` and explains the result; with `what_if`, measures it again with dependencies
    /// broken and instructions left out.
    ///
    /// # Errors
    /// The sandbox cannot be started. Whatever is wrong with the block is in the report.
    pub fn measure(&mut self, block: &Block, what_if: bool) -> Result<Measurement> {
        let mut report = self.profiler.measure(block)?;
        if let Some(explainer) = &mut self.explainer {
            explainer.explain(&mut self.profiler, block, &mut report, what_if)?;
        }
        report.notes.extend(self.notes.iter().cloned());
        Ok(report)
    }

    /// The report of an input that is no block.
    pub fn rejected(&self, input: &str, reason: String) -> Measurement {
        bench::rejected(input, reason, self.profiler.core())
    }

    /// Whoever holds `watch` may look on from now, and call the next measurement off.
    pub fn watched(&mut self, watch: Progress) {
        self.profiler.set_progress(watch.clone());
        if let Some(explainer) = &mut self.explainer {
            explainer.set_progress(watch);
        }
    }
}
