//! Whether counting is on, which a control pipe may change, and how long it was.

use crate::kernel::Order;
use std::time::Duration;

/// The pipe as notes on a run name it.
pub(super) const CONTROL: &str = "the control pipe";

/// Whether events count, and how long they did.
#[derive(Debug, Default)]
pub(super) struct Switched {
    /// Since when they do not, if so.
    pub off: Option<Duration>,
    /// How long they did not, in all, before that.
    pub passed: Duration,
    /// When the next reading was due, seen from there.
    pub left: Duration,
    /// Command to be carried out.
    pub asked: Option<Order>,
    /// How often they were turned on.
    pub times: u32,
    /// Commands that are none.
    pub unknown: u32,
}

impl Switched {
    pub(super) fn is_on(&self) -> bool {
        self.off.is_none()
    }

    /// Time until `now` in which events counted.
    pub(super) fn clock(&self, now: Duration) -> Duration {
        self.off.unwrap_or(now).saturating_sub(self.passed)
    }
}
