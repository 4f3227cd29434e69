//! Which samples of a recording count.

use super::within::Within;
use std::sync::Arc;

/// Which samples count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Index of the event; the first if `None`.
    pub event: Option<usize>,
    /// Threads and processes, by number; all if empty.
    pub threads: Vec<u32>,
    /// Threads by name; all if empty.
    pub names: Vec<String>,
    /// Nanoseconds since the first sample, from and to.
    pub time: Option<(u64, u64)>,
    /// Whether call chains are read: only callers and folded stacks need them, and they take most of
    /// the time.
    pub chains: bool,
    /// Whether the time of each sample is kept.
    pub timeline: bool,
    /// Leave inlined functions out of call chains: to find them, the debug information of all code in chains is
    /// read.
    pub leave_inlined: bool,
    /// When threads were in which regions: samples are summed by region, too.
    pub regions: Option<Arc<Within>>,
}
