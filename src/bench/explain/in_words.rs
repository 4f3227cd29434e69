//! The evidence for the verdict as text.

use super::cycles::{Cycles, NEAR, is_refuted};
use super::model::{Broken, Evidence};

impl Evidence {
    /// The times with dependencies broken, and the latencies, as text.
    pub(super) fn remaining(&self) -> String {
        let of = |variant: Option<Cycles>, how: &str| variant.map(|v| self.left(v, how));
        let parts = [
            of(self.memory_broken, "memory dependencies broken"),
            self.registers_broken.map(|broken| self.remaining_registers(&broken)),
            of(self.both_broken, "both broken"),
            Some(self.latencies()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The time of a variant, as text; a slower variant has latencies of its own.
    pub(super) fn left(&self, variant: Cycles, how: &str) -> String {
        let time = self.time.best;
        match variant.low > self.time.high * (1.0 + NEAR) {
            true => {
                format!("{:.2} cycles, more than the block's {time:.2}, with {how}", variant.best)
            }
            false => format!("{:.2} of {time:.2} cycles remain with {how}", variant.best),
        }
    }

    /// The time that memory adds to the memory-carried chain, as text.
    pub(super) fn cost_of_forwarding(&self) -> String {
        self.memory_chain_arithmetic.map_or(String::new(), |arithmetic| {
            format!(
                "; the arithmetic of that chain takes {arithmetic:.2} or more, passing through memory {:.2} or less",
                (self.time.best - arithmetic).max(0.0)
            )
        })
    }

    /// The time with register dependencies broken, and the cost of breaking them, as text.
    fn remaining_registers(&self, broken: &Broken) -> String {
        let Broken { remaining, instructions, cost, .. } = broken;
        let caveat = match self.is_conclusive(broken) {
            true => String::new(),
            false => format!(
                "; inconclusive: at least {:.2} cycles are expected with them",
                self.lower_bound_broken(broken)
            ),
        };
        format!(
            "{} ({} added instructions per iteration, {cost:.2} cycles of slots{caveat})",
            self.left(*remaining, "register dependencies broken"),
            (100.0 * instructions).round() / 100.0,
        )
    }

    /// The loop-carried latencies, as text.
    pub(super) fn latencies(&self) -> String {
        let of = |latency: Option<Cycles>| {
            let cycles = latency?;
            let refuted = match is_refuted(cycles, self.time, true) {
                true => ", above the measurement: refuted",
                false => "",
            };
            Some(format!("{cycles}{refuted}"))
        };
        match (of(self.register_latency), of(self.memory_latency)) {
            (Some(r), Some(m)) => {
                format!(
                    "the longest loop-carried latency is {r} through registers, {m} through memory"
                )
            }
            (Some(r), None) => format!("the longest loop-carried latency is {r}"),
            (None, Some(m)) => format!("the longest loop-carried latency, through memory, is {m}"),
            (None, None) => "no loop-carried dependency is known".to_owned(),
        }
    }
}
