//! The records of a ring buffer or a file.
//!
//! One decoder serves live ring buffers, sessions and perf.data files.

mod decode;
mod order;
mod pass;
#[cfg(test)]
mod tests;

use crate::sample::Sample;

pub use decode::{Decoder, decode};
pub use order::Bounds;
pub use pass::{Pass, Scan};

/// A mapping of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Process; `u32::MAX` (-1) for the kernel.
    pub pid: u32,
    /// Thread that mapped it.
    pub tid: u32,
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// Offset in the file.
    pub offset: u64,
    /// File, `[vdso]`, `//anon`, `[kernel.kallsyms]_text`, …
    pub path: String,
    /// Build-id, if the record has it.
    pub build_id: Option<Vec<u8>>,
    /// Inode of the file, if the record has it instead of a build-id.
    pub inode: Option<u64>,
    /// Whether it may be executed; `None` if the record does not say.
    pub executable: Option<bool>,
    /// Whether the header's CPU mode is kernel.
    pub kernel: bool,
}

/// One record. Times are nanoseconds of the recording's clock; `None` if the records have none.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A mapping (MMAP, MMAP2).
    Map {
        /// Time of the mapping.
        time: Option<u64>,
        /// The mapping.
        mapping: Box<Mapping>,
    },
    /// The name of a thread (COMM).
    Name {
        /// Time from which it holds.
        time: Option<u64>,
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Name.
        name: String,
        /// Whether `exec` set it: then earlier mappings are gone.
        exec: bool,
    },
    /// A new process or thread.
    Fork {
        /// Time of the start.
        time: Option<u64>,
        /// Process and thread that started.
        child: (u32, u32),
        /// Process and thread that started it.
        parent: (u32, u32),
    },
    /// The end of a thread.
    Exit {
        /// Time of the end.
        time: Option<u64>,
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
    },
    /// Records lost because a ring buffer was full.
    Lost {
        /// Number of records.
        count: u64,
    },
    /// A sample.
    Sample {
        /// Index of its event among the recording's events.
        event: usize,
        /// The sample.
        sample: Sample,
    },
    /// The kernel throttled an event: samples are missing.
    Throttled,
    /// Any other record, by its type.
    Other(u32),
}

impl Record {
    /// Its time; `None` for records without one and for those that are only counted.
    pub fn time(&self) -> Option<u64> {
        match self {
            Self::Map { time, .. }
            | Self::Name { time, .. }
            | Self::Fork { time, .. }
            | Self::Exit { time, .. } => *time,
            Self::Sample { sample, .. } => sample.time,
            Self::Lost { .. } | Self::Throttled | Self::Other(_) => None,
        }
    }
}
