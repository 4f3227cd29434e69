//! State of groups while they are opened and counted.

use super::coded::Coded;
use super::place::Spot;
use crate::kernel::Handle;
use nix::errno::Errno;
use std::time::Duration;
use tma::error::Error;
use tma::tables::EventId;

/// Why opening stopped.
pub(super) enum Stop {
    Denied,
    Fatal(Error),
}

/// Result of opening a group at one place.
pub(super) enum Placed {
    /// Open, leader first.
    Open(Vec<Handle>),
    /// The thread has ended or the CPU is offline.
    Absent,
    /// The kernel refuses this event there.
    Refused(EventId, Errno),
}

/// How events are opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    /// Without kernel mode.
    pub user_only: bool,
    /// Started later, whatever the command does.
    pub standby: bool,
}

impl How {
    /// Counting from the start of the measurement.
    pub(super) fn from_start(user_only: bool) -> Self {
        Self { user_only, standby: false }
    }
}

/// A group that the kernel accepts, and its events where it is open already.
pub(super) struct Part {
    pub events: Vec<Coded>,
    pub open: Option<(Spot, Vec<Handle>)>,
}

impl Part {
    pub(super) fn new(events: Vec<Coded>) -> Self {
        Self { events, open: None }
    }
}

/// Groups of one kind need the same counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    pub core: usize,
    /// Counter requirements of each event, sorted.
    pub needs: Vec<u64>,
}

impl Kind {
    /// Whether `other` needs all that this needs.
    pub(super) fn is_within(&self, other: &Kind) -> bool {
        let mut rest = other.needs.iter();
        self.core == other.core && self.needs.iter().all(|n| rest.any(|m| m == n))
    }
}

/// The parts or the whole of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// Its parts.
    Parts,
    /// Its parts; the whole is on trial since then.
    Trial(Duration),
    /// The whole; it last ran then.
    Whole(Duration),
}
