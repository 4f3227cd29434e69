//! What samples tell of time.

use profile::event::EventKind;
use profile::hot::Tally;

/// What the samples of a window tell of time.
#[derive(Debug, Clone, Default)]
pub struct Time {
    /// The sampled event.
    pub event: String,
    /// CPU seconds that were not idle.
    pub busy: Option<f64>,
}

impl Time {
    /// CPU seconds that a part of the samples stands for: the CPU clock tells them, cycles divide the busy time, and other
    /// events tell nothing.
    pub(super) fn seconds(&self, part: Tally, all: Tally) -> Option<f64> {
        match EventKind::of(&self.event) {
            EventKind::Time => Some(part.weight / 1e9),
            EventKind::Cycles if all.weight > 0.0 => Some(self.busy? * part.weight / all.weight),
            _ => None,
        }
    }
}
