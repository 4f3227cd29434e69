//! The outcome of a run: its readings, how it ended, its result.

use super::frames::Frames;
use super::software;
use crate::{Exit, Software};
use std::time::Duration;
use tma::counts::Counts;

/// Result of a run.
#[derive(Debug)]
pub struct RunResult {
    /// Counts by kind of core and scope.
    pub counts: Vec<Counts>,
    /// Software counts.
    pub software: Software,
    /// How the command ended, unless this program ended it.
    pub exit: Option<Exit>,
    /// The signal that ended the run early.
    pub interrupted: Option<i32>,
    /// Kernel mode was not counted.
    pub user_only: bool,
    /// Time on each kind of core, nanoseconds; empty unless hybrid.
    pub core_time: Vec<Option<u64>>,
    /// Notes that a report must show.
    pub notes: Vec<String>,
    /// Notes in `notes` on the control pipe.
    pub of_control: Vec<String>,
}

/// How the counting ended.
pub(super) struct End {
    /// When.
    pub(super) at: Duration,
    /// The software counts then, if the counted tasks go on.
    pub(super) software: Option<software::Totals>,
    pub(super) interrupted: Option<i32>,
    /// The command is still running and has to be ended.
    pub(super) forced: bool,
}

/// The readings of a whole run or of one interval.
pub(super) struct Readings {
    pub(super) frames: Frames,
    pub(super) software: software::Totals,
    pub(super) since: Duration,
    /// How long events had counted then.
    pub(super) clock: Duration,
}
