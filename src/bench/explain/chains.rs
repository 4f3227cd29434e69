//! Evidence from loop-carried chains: latency of the memory-carried chain without memory, and whether iterations
//! overlap.

use super::explainer::{Explainer, Subject};
use super::findings::Findings;
use isa::deps::recurrence::{Edge, Recurrence};
use isa::latency::Source;

impl Explainer {
    /// Minimum latency of a memory-carried chain without its passes through memory.
    pub(super) fn arithmetic(&self, chain: &Recurrence) -> f64 {
        let forwarding = |step: &Edge| {
            let (_, class) = step.forward?;
            Some(self.analyser.latencies().forwarding(class).low)
        };
        let all = chain.path.iter().map(|s| s.latency.low - forwarding(s).unwrap_or_default());
        all.sum::<f64>() / chain.iterations.max(1) as f64
    }

    /// Whether iterations overlap for certain: all loop-carried latencies are known and far below the
    /// time, no load can wait for a store, and the window holds twice what an iteration takes.
    pub(super) fn overlaps(&self, subject: &Subject<'_>, findings: &Findings) -> bool {
        let Findings { evidence, analysis, code, .. } = findings;
        let accesses = || code.effects.iter().flat_map(|effects| &effects.memory);
        let short = analysis.recurrences.iter().all(|chain| {
            let assumed = |step: &Edge| matches!(step.latency.source, Source::Assumed(_));
            evidence.is_far_below(chain.high) && !chain.path.iter().any(assumed)
        });
        let instructions = subject.block.instructions.len() as f64;
        let longest = evidence.residual_latency.unwrap_or_default() * instructions;
        let held = f64::from(self.window()) / instructions;
        let stores = accesses().any(|a| a.store) && accesses().any(|a| a.load);
        short && !stores && longest < held * evidence.time.low / 2.0
    }
}
