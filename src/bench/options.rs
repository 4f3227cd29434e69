//! Options of a measurement; its progress, and its cancellation from another thread.

use crate::counters::Pmu;
use crate::values::{Init, Snapshot, Values, sets};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tma::Core;

/// Time limit of a block besides waiting: hundreds of times what most take.
const LONGEST: Duration = Duration::from_secs(30);
/// Time limit where the user has chosen a budget: still many times what most take on an idle machine.
const LIMITED: Duration = Duration::from_secs(10);

/// Where core cycles come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockSource {
    /// The PMU where there is one, else the time-stamp counter.
    #[default]
    Auto,
    /// The time-stamp counter, calibrated with dependency chains of known latency.
    Tsc,
    /// The PMU; an error without one.
    Pmu,
}

/// How many samples the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// One pass, 16 samples.
    Quick,
    /// As many as most blocks need.
    Default,
    /// 5 passes over 6 placements.
    Thorough,
}

/// The method that the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// With distinct pages, and registers and memory restored where that is needed.
    Tdtool,
    /// That of the BHive paper.
    Bhive,
}

/// Options of a measurement.
///
/// ```
/// use bench::{Init, Options, Values};
///
/// // rbx (number 3 in the encoding of instructions) is 7 in every set of initial values.
/// let options = Options { init: vec![(Init::Register(3), 7)], ..Options::quick() };
/// assert!(options.candidates().iter().all(|values: &Values| values.registers[3] == 7));
///
/// // As the BHive paper measures: all pages of the block are one physical page.
/// assert_eq!(Options::default().bhive().physical_pages, 1);
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// The preset of passes, placements and rounds; none where these are others.
    pub preset: Option<Preset>,
    /// The method of pages, values and repetitions.
    pub method: Method,
    /// Passes over all placements, at different times.
    pub passes: usize,
    /// Placements of the code.
    pub placements: usize,
    /// Rounds (samples) per placement and pass.
    pub rounds: usize,
    /// Approximate cycles of a long run.
    pub cycles: f64,
    /// Greatest difference of batches that agree, as a share.
    pub tolerance: f64,
    /// Most passes repeated because of contention.
    pub retries: usize,
    /// How long a block may wait for an uncontended core.
    pub budget: Duration,
    /// Whether the user has chosen the budget: a block that computes longer than most do is then ended, too.
    pub is_limited: bool,
    /// Whether to measure bounds and the cost of subnormals too.
    pub explain: bool,
    /// Whether to check the assumptions of the measurement. Rows of a batch do not report them.
    pub assumptions: bool,
    /// Most copies in the unrolled form; by default as many as fit the op cache.
    pub copies: Option<usize>,
    /// Minimum dynamic instructions of a long run, within the limit on repetitions.
    pub min_instructions: usize,
    /// Offset of the code within a 64-byte cache line; by default one per placement.
    pub align: Option<usize>,
    /// Address of the block in its program: a loop is measured at the same offset within a cache line.
    pub address: Option<u64>,
    /// Whether the throughput is the difference of two unroll factors instead of `cycles(u)/u`.
    pub two_factors: bool,
    /// Whether subnormals are computed exactly instead of flushed to 0 (FTZ and DAZ).
    pub gradual_underflow: bool,
    /// Whether the unrolled form never loops over its copies: registers and memory are restored between
    /// repetitions even if addresses do not change.
    pub straight: bool,
    /// Whether the loop form is measured too.
    pub loop_form: bool,
    /// Where core cycles come from.
    pub clock: ClockSource,
    /// Whether misses and the top-down tree are counted, where there is a PMU.
    pub counts: bool,
    /// Whether samples with contention, as detected by the sentinel, are rejected.
    pub sentinel: bool,
    /// The core measured on.
    pub core: Arc<Core>,
    /// This machine's PMU, or why it has none.
    pub pmu: Pmu,
    /// Whether pages are mapped on demand; otherwise a page fault fails the block.
    pub mapping: bool,
    /// Distinct physical pages.
    pub physical_pages: usize,
    /// Pages that a block may touch.
    pub page_limit: usize,
    /// How many sets of initial values are tried.
    pub value_sets: usize,
    /// Budget of the search for values with fewer pages, in runs; a run with many pages counts as several.
    pub value_search_budget: usize,
    /// Whether address registers that a copy overwrites may be reinitialised before the next.
    pub reseed: bool,
    /// Fixed initial values.
    pub values: Option<Values>,
    /// Values set by the user, which override those of every set tried.
    pub init: Vec<(Init, u64)>,
    /// Registers and memory of the program that the block is from.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Fixed pages: a block that touches others fails.
    pub pages: Option<Vec<u64>>,
    /// Processor to measure on; by default the current one, and under contention any allowed one.
    pub cpu: Option<usize>,
    /// Progress and cancellation.
    pub progress: Progress,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            preset: Some(Preset::Default),
            method: Method::Tdtool,
            passes: 3,
            placements: 4,
            rounds: 16,
            cycles: 5000.0,
            tolerance: 0.008,
            retries: 3,
            budget: Duration::from_secs(5),
            is_limited: false,
            explain: true,
            assumptions: true,
            copies: None,
            min_instructions: 0,
            align: None,
            address: None,
            two_factors: true,
            gradual_underflow: false,
            straight: false,
            loop_form: true,
            clock: ClockSource::Auto,
            counts: true,
            sentinel: true,
            core: Arc::default(),
            pmu: Pmu::default(),
            mapping: true,
            physical_pages: 16,
            page_limit: 256,
            value_sets: 16,
            value_search_budget: 120,
            reseed: true,
            values: None,
            init: Vec::new(),
            snapshot: None,
            pages: None,
            cpu: None,
            progress: Progress::default(),
        }
    }
}

impl Options {
    /// Screening: one pass, 16 samples, no loop form.
    pub fn quick() -> Self {
        Self {
            preset: Some(Preset::Quick),
            passes: 1,
            placements: 2,
            rounds: 8,
            cycles: 3000.0,
            tolerance: 0.04,
            retries: 1,
            explain: false,
            loop_form: false,
            counts: false,
            page_limit: 64,
            value_search_budget: 16,
            ..Self::default()
        }
    }

    /// 5 passes over 6 placements.
    pub fn thorough() -> Self {
        let preset = Some(Preset::Thorough);
        Self { preset, passes: 5, placements: 6, rounds: 40, retries: 6, ..Self::default() }
    }

    /// The configuration of the BHive paper: one physical page, one value set, plain unrolling.
    #[must_use]
    pub fn bhive(self) -> Self {
        let method = Method::Bhive;
        let alike = Self { method, physical_pages: 1, value_sets: 1, ..self };
        Self { reseed: false, straight: true, loop_form: false, ..alike }
    }

    /// The sets of initial values to try, in order.
    pub fn candidates(&self) -> Vec<Values> {
        let mut all = match &self.values {
            Some(values) => vec![values.clone()],
            None => sets(),
        };
        all.truncate(self.value_sets.max(1));
        for values in &mut all {
            for (place, value) in &self.init {
                place.set(values, *value);
            }
        }
        let mut distinct: Vec<Values> = Vec::new();
        for values in all {
            if !distinct.contains(&values) {
                distinct.push(values);
            }
        }
        distinct
    }

    /// Time limit of a block in total, waiting included, and of its explanation again.
    pub fn longest(&self) -> Duration {
        self.budget.saturating_add(if self.is_limited { LIMITED } else { LONGEST })
    }

    /// How many pages a block may have mapped.
    pub fn pages_allowed(&self) -> usize {
        if self.mapping { self.page_limit } else { 0 }
    }
}

/// Shared by the measuring thread and the one that waits for it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    passes: AtomicU32,
    step: Mutex<String>,
}

impl Progress {
    /// Cancels the measurement: it fails at its next pass or pause.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Timed passes so far, over all forms of the block and all loops that calibrate the clock.
    pub fn passes(&self) -> u32 {
        self.0.passes.load(Ordering::Relaxed)
    }

    /// Sets the text of the current step.
    pub fn begin(&self, step: String) {
        *self.0.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }

    /// The current step; empty if none was set.
    pub fn step(&self) -> String {
        self.0.step.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "nothing is timed there"))]
    pub(super) fn count_pass(&self) {
        self.0.passes.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_values_are_in_every_set_and_equal_sets_are_tried_once() {
        let init = vec![(Init::Register(3), 7), (Init::Memory, 9), (Init::Register(3), 8)];
        let options = Options { init, ..Options::default() };
        let all = options.candidates();
        assert!(all.iter().all(|v| v.registers[3] == 8 && v.memory == 9));
        assert!(all.len() < sets().len(), "sets that differ in memory only are the same now");
        let few = Options { value_sets: 2, ..Options::default() };
        assert_eq!(few.candidates(), sets()[..2]);
        assert_eq!(Options { mapping: false, ..few }.pages_allowed(), 0);
    }
}
