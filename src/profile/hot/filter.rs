//! Which samples of a recording count.

use super::within::Within;
use crate::recording::About;
use std::sync::Arc;

/// Threads as a user names them: a name, which may consist of digits, or the number of a thread or process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadWord {
    /// As written.
    pub name: String,
    /// The number that it may be.
    pub number: Option<u32>,
}

impl From<&str> for ThreadWord {
    fn from(word: &str) -> Self {
        Self { name: word.to_owned(), number: word.parse().ok() }
    }
}

/// Which samples count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Index of the event; the first that has samples if `None`.
    pub event: Option<usize>,
    /// Threads and processes; all if empty.
    pub threads: Vec<ThreadWord>,
    /// Nanoseconds since the first sample, from and to.
    pub time: Option<(u64, u64)>,
    /// Whether call chains are read: only callers and folded stacks need them, and they take most of
    /// the time.
    pub chains: bool,
    /// Whether to store the time of each sample.
    pub timeline: bool,
    /// Leave inlined functions out of call chains: to find them, the debug information of all code in chains is
    /// read.
    pub leave_inlined: bool,
    /// When threads were in which regions: samples are summed by region, too.
    pub regions: Option<Arc<Within>>,
}

impl Filter {
    /// Index of the event whose samples count.
    pub fn event_of(&self, recording: &About) -> usize {
        self.event.unwrap_or_else(|| recording.main_event())
    }
}
