//! Limits of a block: total time, and commands that the watchdog ends.

use std::time::{Duration, Instant};

/// The watchdog: no command takes longer.
pub const WATCHDOG: Duration = Duration::from_millis(100);
/// Commands of a block that the watchdog may end: other initial values may end a loop of string instructions,
/// but of hundreds of candidates each would take as long.
pub const MOST_STOPPED: u32 = 5;

/// The remaining limits of the current block.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limit {
    end: Option<Instant>,
    stopped: u32,
}

impl Limit {
    /// No command begins after `end`, and those under way are ended.
    pub fn until(end: Instant) -> Self {
        Self { end: Some(end), stopped: 0 }
    }

    /// Whether the time is up.
    pub fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Whether another command may begin.
    pub fn is_spent(&self) -> bool {
        self.is_over() || self.stopped >= MOST_STOPPED
    }

    /// Time limit of the next command.
    pub fn next_command(&self) -> Duration {
        self.end.map_or(WATCHDOG, |end| WATCHDOG.min(end.saturating_duration_since(Instant::now())))
    }

    /// The watchdog has ended a command.
    pub fn count_stopped(&mut self) {
        self.stopped += 1;
    }

    /// Whether the watchdog has ended one since the last [`Limit::forgive`].
    pub fn was_stopped(&self) -> bool {
        self.stopped > 0
    }

    /// Allows as many stopped commands again: the worker may have been descheduled rather than busy.
    pub fn forgive(&mut self) {
        self.stopped = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_what_is_left_and_none_begins_after_the_end() {
        let over = Limit::until(Instant::now());
        assert!(over.is_over() && over.is_spent() && over.next_command().is_zero());
        let mut ample = Limit::until(Instant::now() + Duration::from_secs(3600));
        assert_eq!((ample.is_spent(), ample.next_command()), (false, WATCHDOG));
        (0..MOST_STOPPED).for_each(|_| ample.count_stopped());
        assert!(ample.is_spent() && !ample.is_over());
        ample.forgive();
        assert!(!ample.is_spent());
        assert!(!Limit::default().is_over(), "what is no block's has no end");
    }
}
