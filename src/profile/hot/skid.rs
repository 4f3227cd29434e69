//! How exact the addresses of an event's samples are.

use crate::event::Event;
use serde::{Deserialize, Serialize};

/// How exact the addresses of samples are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skid {
    /// Exact: the instruction that caused the event.
    None,
    /// The instruction that caused the event, or one a few after it.
    #[default]
    Some,
    /// The point where the timer interrupt was taken: often the instruction after a slow one.
    Timer,
}

impl Skid {
    /// The skid of an event's samples.
    pub fn of(event: &Event) -> Self {
        // PERF_TYPE_SOFTWARE: clocks (0 and 1) are sampled in a timer interrupt; faults and
        // switches are synchronous.
        match (event.kind, event.config, event.precise) {
            (1, 0 | 1, _) => Self::Timer,
            (1 | 2 | 5, ..) | (_, _, 3) => Self::None,
            _ => Self::Some,
        }
    }

    /// The note of a report.
    pub fn explain(self) -> &'static str {
        match self {
            Self::None => "samples are on the instruction itself",
            Self::Some => "skid: the instruction that caused the event, or one a few after it",
            Self::Timer => "skid: usually the instruction after the stalled one",
        }
    }
}
