//! What to count, and at what cost.

use std::time::Duration;

/// Time between readings.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Site {
    /// Path of the file as in `/proc/PID/maps`.
    pub path: String,
    /// Offset in the file.
    pub offset: u64,
}

/// How much counting a site may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Hits at the start of a run after which a site is counted in windows only.
    pub first: u64,
    /// Hits in a window of time.
    pub window: u64,
    /// Longest window of time.
    pub longest: Duration,
    /// Mean time between windows of time.
    pub pause: Duration,
}

/// At about 9 µs per hit (measured on a virtual machine; about one on bare metal): half a second at
/// the start, then a sixth of the time. Windows are short so that there are many:
/// the error is estimated from their differences.
impl Default for Limits {
    fn default() -> Self {
        Self {
            first: 50_000,
            window: 3_000,
            longest: Duration::from_millis(100),
            pause: Duration::from_millis(150),
        }
    }
}
