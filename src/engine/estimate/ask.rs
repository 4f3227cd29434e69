//! What is asked for, and how its progress is reported.

use super::early::SoFar;
use crate::core_model::CoreModel;
use crate::documents::evidence::Evidence;
use crate::steps::{Left, Watch};
use pmu::Command;
use pmu::machine::Moment;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What to estimate.
#[derive(Debug, Clone)]
pub struct EstimateAsk {
    /// The command, run again.
    pub command: Command,
    /// A live process instead, in windows that long in place of further runs.
    pub process: Option<(i32, Duration)>,
    /// The core.
    pub model: CoreModel,
    /// Called before each step.
    pub progress: Watch,
    /// Called with the document as it grows, before it is complete.
    pub so_far: Option<SoFar>,
    /// Keeps what it was computed from.
    pub keep: Option<Keep>,
    /// From when on other processes would disturb it; none of kept evidence.
    pub since: Option<Moment>,
}

/// Keeps evidence.
#[derive(Clone)]
pub struct Keep(Arc<dyn Fn(Evidence) + Send + Sync>);

impl Keep {
    /// Calls `keep`, which says itself where it cannot.
    pub fn new(keep: impl Fn(Evidence) + Send + Sync + 'static) -> Self {
        Self(Arc::new(keep))
    }

    /// Keeps it.
    pub(super) fn keep(&self, evidence: Evidence) {
        (self.0)(evidence);
    }
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keep")
    }
}

/// How many isolated measurements there are, before that is known.
const USUAL: usize = 4;

impl Left {
    /// Before anything is known.
    pub(super) fn all() -> Self {
        Self { counts: 2, branches: true, loads: true, isolated: USUAL, ..Self::default() }
    }
}

/// What an estimate of a command that took so many seconds costs, in words.
pub fn cost(plain: f64) -> String {
    let left = Left::all();
    format!(
        "up to {} further runs of the command, a few that are ended at a hot loop, and about {:.0} s",
        left.runs(),
        left.seconds(plain).ceil()
    )
}

/// The same in short.
pub fn brief_cost(plain: f64) -> String {
    let left = Left::all();
    format!("up to {} further runs, about {:.0} s", left.runs(), left.seconds(plain).ceil())
}

/// What an estimate of a live process costs, in words.
pub fn cost_of_process(window: Duration) -> String {
    let left = Left { counts: 1, ..Left::all() };
    format!(
        "up to {} windows of {} s in which probes slow the process, and about {:.0} s",
        left.runs(),
        window.as_secs_f64(),
        left.seconds(window.as_secs_f64()).ceil()
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
            "up to 5 further runs of the command, a few that are ended at a hot loop, and about 24 s"
        );
    }
}
