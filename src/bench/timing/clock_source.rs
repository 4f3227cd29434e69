//! A source of core cycles, and the time-stamp counter as one.

use super::form_timing::FormTiming;
use super::measure::{Form, Pass};
use crate::Options;
use crate::clock::TscClock;
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
