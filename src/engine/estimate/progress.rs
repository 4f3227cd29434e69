//! Steps as they begin, with the time that is left.

use super::ask::EstimateAsk;
use crate::steps::{Left, Step};

/// The steps of one estimate.
pub(super) struct Progress<'a> {
    ask: &'a EstimateAsk,
    /// Seconds of a run without probes.
    pub plain: f64,
    number: usize,
}

impl<'a> Progress<'a> {
    /// None has begun.
    pub fn new(ask: &'a EstimateAsk, plain: f64) -> Self {
        Self { ask, plain, number: 0 }
    }

    /// A step begins; `left` is what is left with it.
    pub fn begin(&mut self, what: &str, left: Left) {
        self.step(what, left, true);
    }

    /// As [`Self::begin`], without a run of the command.
    pub fn begin_apart(&mut self, what: &str, left: Left) {
        self.step(what, left, false);
    }

    fn step(&mut self, what: &str, left: Left, runs: bool) {
        self.number += 1;
        let of = self.number + left.runs() + left.isolated;
        self.report(what, of, left.seconds(self.plain), runs);
    }

    /// All is done.
    pub fn end(&self) {
        self.report("", self.number, 0.0, false);
    }

    fn report(&self, what: &str, of: usize, seconds_left: f64, runs: bool) {
        let what = what.to_owned();
        self.ask.progress.call(Step {
            what,
            number: self.number,
            of,
            seconds_left: Some(seconds_left),
            runs,
        });
    }
}
