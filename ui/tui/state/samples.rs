//! Which samples the functions are of.

use profile::hot::Thread;

/// A choice of samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleFilter {
    /// Index of the event; `None`: the first.
    pub event: Option<usize>,
    /// Threads by number or name, as on the command line; empty: all.
    pub threads: Vec<String>,
    /// Nanoseconds since the first sample, from and to; `None`: all.
    pub time: Option<(u64, u64)>,
}

/// `worker (4711)`.
pub fn thread_name(thread: &Thread) -> String {
    match thread.name.as_str() {
        "" => thread.tid.to_string(),
        name => format!("{name} ({})", thread.tid),
    }
}
