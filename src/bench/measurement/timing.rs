//! The block's time: headline, forms, samples.

use serde::Serialize;

/// A group of batches that agree.
#[derive(Debug, Clone, Serialize)]
pub struct Mode {
    /// Cycles per iteration.
    pub cycles: f64,
    /// Share of the batches.
    pub share: f64,
}

/// The headline.
#[derive(Debug, Clone, Serialize)]
pub struct Throughput {
    /// Core cycles per iteration.
    pub cycles: f64,
    /// Lowest pass.
    pub low: f64,
    /// Highest pass.
    pub high: f64,
    /// Groups of batches.
    pub modes: Vec<Mode>,
    /// Source of the cycles.
    pub clock: &'static str,
}

/// One execution of a loop with the program's values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Execution {
    /// Its iterations.
    pub iterations: u64,
    /// Core cycles of an iteration.
    pub cycles: f64,
    /// The lowest of the samples' range.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// One form of running the block.
#[derive(Debug, Clone, Serialize)]
pub struct FormResult {
    /// Core cycles per iteration; absent where it was not measured.
    pub cycles: Option<f64>,
    /// Lowest pass.
    pub low: Option<f64>,
    /// Highest pass.
    pub high: Option<f64>,
    /// Copies in the body.
    pub copies: usize,
    /// Why it was not measured, or why its cycles were rejected.
    pub reason: Option<String>,
}

impl FormResult {
    /// Its cycles, unless they were rejected.
    pub fn trusted(&self) -> Option<f64> {
        self.cycles.filter(|_| self.reason.is_none())
    }
}

/// Both forms.
#[derive(Debug, Clone, Serialize)]
pub struct Forms {
    /// Straight copies between fences.
    pub unrolled: FormResult,
    /// A loop.
    #[serde(rename = "loop")]
    pub looped: FormResult,
}

/// Accepted and rejected samples.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Samples {
    /// Accepted rounds.
    #[serde(rename = "kept")]
    pub accepted: usize,
    /// Rounds rejected because of contention.
    pub contended: usize,
    /// Rounds rejected because the clock frequency differed from that of the others.
    pub clock_changed: usize,
    /// Why whole passes were void.
    pub void: Vec<String>,
}

/// Cycles of an iteration and their range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// Core cycles.
    pub cycles: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
}

/// The headline of straight copies.
pub const UNROLLED: &str = "unrolled";
/// The headline of a loop.
pub const LOOP: &str = "loop";

/// Findings of a run as a loop.
#[derive(Debug, Clone)]
pub struct Closed {
    /// Whether loads of an iteration read what an earlier one stored; `None` if it was not traced.
    pub(crate) forwards: Option<bool>,
    /// Whether the loop is this block and no other.
    pub(crate) is_one_block: bool,
}
