//! What to count, and at what cost.

use std::time::Duration;

/// Time between readings.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Site {
    /// Path of the file as the kernel names it.
    pub path: String,
    /// Offset in the file.
    pub offset: u64,
}

/// What to count.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// At most four places.
    pub sites: &'a [Site],
    /// For each of them, the colder ones around it, the nearest first.
    pub around: &'a [Vec<usize>],
    /// For each of them, if it is known beforehand: of how many of its entries one window is to be.
    pub strides: &'a [Option<u64>],
    /// How much it may cost.
    pub limits: Limits,
    /// What a hit costs.
    pub cost: Duration,
}

/// How much counting a place may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Hits at the start of a run after which a place is counted in windows alone.
    pub first: u64,
    /// The same of a place without a colder one around it: it is counted throughout or not at all.
    pub alone: u64,
    /// Hits in a window.
    pub window: u64,
    /// Longest window.
    pub longest: Duration,
    /// Mean time between windows.
    pub pause: Duration,
    /// Time that windows of whole turns may take, of each clock in a thread, where their number was
    /// planned.
    pub turns: Duration,
}

/// At some 9 µs a hit (measured on a virtual machine; bare metal takes about one): half a second at
/// the start, then a sixth of the time, or two seconds. Windows are short so that there are many of them: how much
/// they differ is what the error comes from.
impl Default for Limits {
    fn default() -> Self {
        Self {
            first: 50_000,
            alone: 500_000,
            window: 3_000,
            longest: Duration::from_millis(100),
            pause: Duration::from_millis(150),
            turns: Duration::from_secs(2),
        }
    }
}
