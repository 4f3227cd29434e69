//! What is asked for, and how its progress is reported.

use super::early::SoFar;
use crate::core_model::CoreModel;
use crate::steps::Watch;
use pmu::Command;
use pmu::machine::Moment;
use report::documents::evidence::Evidence;
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
