//! Kinds of records (`enum perf_event_type` of linux/perf_event.h; perf's own begin at 64).

/// A mapping.
pub const MMAP: u32 = 1;
/// Records lost.
pub const LOST: u32 = 2;
/// A thread's name.
pub const COMM: u32 = 3;
/// The end of a thread.
pub const EXIT: u32 = 4;
/// The kernel throttles an event.
pub const THROTTLE: u32 = 5;
/// The end of throttling.
pub const UNTHROTTLE: u32 = 6;
/// A new thread.
pub const FORK: u32 = 7;
/// A sample.
pub const SAMPLE: u32 = 9;
/// A mapping, with its protection and device or build-id.
pub const MMAP2: u32 = 10;
/// Samples lost.
pub const LOST_SAMPLES: u32 = 13;
/// The first kind of records that perf itself writes into its files.
pub const USER_TYPE_START: u32 = 64;
