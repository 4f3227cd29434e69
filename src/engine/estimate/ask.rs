//! What is asked for, and how its progress is reported.

use crate::core_model::CoreModel;
use pmu::Command;
use std::fmt;
use std::sync::Arc;

/// What to estimate.
#[derive(Debug, Clone)]
pub struct EstimateAsk {
    /// The command, run again.
    pub command: Command,
    /// The core.
    pub model: CoreModel,
    /// Called before each step.
    pub progress: Watch,
}

/// What is called before each step.
#[derive(Clone)]
pub struct Watch(Arc<dyn Fn(&Step) + Send + Sync>);

impl Watch {
    /// Calls `show`.
    pub fn new(show: impl Fn(&Step) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    /// A step begins.
    pub(super) fn show(&self, step: &Step) {
        (self.0)(step);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// A step that begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it is: `counts`, `measuring loop 3 of 7`; empty at the end.
    pub what: String,
    /// Its number, from 1.
    pub number: usize,
    /// Steps in all, as far as known.
    pub of: usize,
    /// Seconds that are left, about.
    pub seconds_left: f64,
}

/// Times of a run with probes as multiples of the run without (docs/results/profiles.md).
const COUNTS: f64 = 1.5;
const BRANCHES: f64 = 2.0;
const ADDRESSES: f64 = 2.0;
const LATENCIES: f64 = 1.6;
/// Seconds of an isolated measurement with its explanation.
const ISOLATED: f64 = 1.5;
/// How many there are, before that is known.
const USUAL: usize = 4;

/// How long the steps take that are left, from the time of a run without probes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Left {
    pub counts: usize,
    pub branches: bool,
    pub loads: bool,
    pub isolated: usize,
}

impl Left {
    /// Before anything is known.
    pub fn all() -> Self {
        Self { counts: 2, branches: true, loads: true, isolated: USUAL }
    }

    /// Runs of the command.
    pub fn runs(self) -> usize {
        self.counts + usize::from(self.branches) + 2 * usize::from(self.loads)
    }

    /// Seconds.
    pub fn seconds(self, plain: f64) -> f64 {
        let mut runs = COUNTS * self.counts as f64;
        runs += if self.branches { BRANCHES } else { 0.0 };
        runs += if self.loads { ADDRESSES + LATENCIES } else { 0.0 };
        runs * plain + ISOLATED * self.isolated as f64
    }
}

/// What an estimate of a command that took so many seconds costs, in words.
pub fn cost(plain: f64) -> String {
    let left = Left::all();
    format!(
        "up to {} further runs of the command, a few that end at a hot loop, and about {:.0} s",
        left.runs(),
        left.seconds(plain).ceil()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 2 × 1.5 + 2 + 2 + 1.6 = 8.6 runs of 2 s, and 4 × 1.5 s.
    #[test]
    fn the_cost_is_that_of_all_runs() {
        assert_eq!(Left::all().runs(), 5);
        assert!((Left::all().seconds(2.0) - 23.2).abs() < 1e-9);
        assert_eq!(
            cost(2.0),
            "up to 5 further runs of the command, a few that end at a hot loop, and about 24 s"
        );
    }
}
