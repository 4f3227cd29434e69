//! A question for an estimate.

use crate::callback::Callback;
use crate::core_model::CoreModel;
use crate::steps::Step;
use pmu::Command;
use pmu::machine::Moment;
use report::documents::estimate::Estimate;
use report::documents::evidence::Evidence;
use std::time::Duration;

/// A program to estimate, and how.
#[derive(Debug, Clone)]
pub struct EstimateAsk {
    /// The command, run again.
    pub command: Command,
    /// A live process instead, in windows that long in place of further runs.
    pub process: Option<(i32, Duration)>,
    /// The core.
    pub model: CoreModel,
    /// Called before each step.
    pub progress: Callback<Step>,
    /// Called with the document as it grows, before it is complete.
    pub so_far: Option<Callback<Estimate>>,
    /// Called with the evidence that it was computed from.
    pub keep: Option<Callback<Evidence>>,
    /// From when on other processes would disturb it; `None` for saved evidence.
    pub since: Option<Moment>,
}
