//! A live measurement: the question, updates while it runs, and the outcome.

use crate::documents::Report;
use crate::topdown::choose::Ask;
use pmu::machine::Finding;
use pmu::{Aggregate, Command, Exit, Target};
use std::sync::Arc;
use std::time::Duration;
use tma::Core;

/// What to measure and what to show of it.
#[derive(Debug, Clone)]
pub struct LiveAsk {
    /// Which nodes.
    pub ask: Ask,
    /// Force this table.
    pub uarch: Option<String>,
    /// The core: with a forced table it may be another than this processor's.
    pub core: Arc<Core>,
    /// What to count.
    pub target: Target,
    /// What to run.
    pub command: Option<Command>,
    /// The command as the user wrote it, for the report.
    pub typed: Vec<String>,
    /// How counts are put together.
    pub aggregate: Aggregate,
    /// Count children.
    pub inherit: bool,
    /// User mode only.
    pub user_only: bool,
    /// Rotate groups; otherwise one run of the command per group.
    pub multiplex: bool,
    /// Level 1 first, then below what is flagged, until a leaf.
    pub drilldown: bool,
    /// Repeats of the command.
    pub repeats: u32,
    /// Time before counting starts.
    pub delay: Duration,
    /// Time after which counting ends.
    pub duration: Option<Duration>,
    /// Length of an interval.
    pub interval: Option<Duration>,
    /// Fail where there is no core PMU.
    pub require_pmu: bool,
}

/// An update while a measurement runs.
#[derive(Debug, Clone)]
pub enum Update {
    /// How often the command will run, if more than once; sent before the first run.
    Runs(u32),
    /// The report of one interval.
    Interval(Box<Report>),
    /// A signal ends the measurement.
    Interrupted(i32),
}

/// A finished measurement.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What it found.
    pub report: Report,
    /// How the command ended.
    pub exit: Option<Exit>,
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
    /// Why there is no tree, and what to do about it.
    pub blocked: Option<Finding>,
}
