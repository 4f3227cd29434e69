//! Core cycles: where they come from, and whether the core was ours while they passed.
//!
//! | clock | core cycles are |
//! |---|---|
//! | `tsc` | ticks of the time-stamp counter, in relation to chains of known latency |
//! | `pmu` | counted by the PMU: those of the block's copies, not converted from anything |
//!
//! Both take their samples between sentinels, which detect contention.

mod pmu;
mod sentinel;
mod tsc;

pub use pmu::PmuClock;
pub use sentinel::Sentinel;
pub use tsc::{CHAINS, Calibration, Places, TscClock, step};

use super::form_timing::FormTiming;
use super::measure::{Form, Pass};
use crate::Options;
use crate::runner::Runner;
use tma::Result;

/// Measures core cycles of a form.
pub trait Clock {
    /// Name in reports.
    fn name(&self) -> &'static str;
    /// One pass over every placement of `form`, with `rounds` samples of each; added to `timed`.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    fn pass(
        &mut self,
        form: &Form,
        runner: &mut Runner,
        options: &Options,
        rounds: usize,
        timed: &mut FormTiming,
    ) -> Result<Pass>;
}

impl Clock for TscClock {
    fn name(&self) -> &'static str {
        "tsc"
    }

    fn pass(
        &mut self,
        form: &Form,
        runner: &mut Runner,
        options: &Options,
        rounds: usize,
        timed: &mut FormTiming,
    ) -> Result<Pass> {
        form.pass(runner, options, rounds, timed)
    }
}
