//! The records of a ring or a file.
//!
//! | file | concern |
//! |---|---|
//! | `decode` | a record's body, by its kind |
//! | [`raw`] | records one after the other, not yet decoded |
//! | `ids` | which event a record is of, and what ids stand at its end |

mod decode;
mod ids;
#[cfg(test)]
mod tests;

pub use decode::{Decoder, decode};

use super::sample::Sample;

/// What is mapped where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Process; `u32::MAX` (-1) is the kernel.
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
    /// Build-id, where the record has it.
    pub build_id: Option<Vec<u8>>,
    /// Whether it may be executed; `None` where the record does not tell.
    pub executable: Option<bool>,
    /// Whether the kernel's own header says it is of the kernel.
    pub kernel: bool,
}

/// One record. Times are nanoseconds of the recording's clock, where records have them.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A mapping (MMAP, MMAP2).
    Map {
        /// When.
        time: Option<u64>,
        /// What.
        mapping: Box<Mapping>,
    },
    /// A thread's name.
    Name {
        /// When.
        time: Option<u64>,
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Name.
        name: String,
        /// Whether it comes from `exec`: its mappings are gone.
        exec: bool,
    },
    /// A new process or thread.
    Fork {
        /// When.
        time: Option<u64>,
        /// Its process and thread.
        child: (u32, u32),
        /// The parent's.
        parent: (u32, u32),
    },
    /// The end of a thread.
    Exit {
        /// When.
        time: Option<u64>,
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
    },
    /// Records lost because a ring was full.
    Lost {
        /// How many.
        count: u64,
    },
    /// A sample of the event at this index of the recording's events.
    Sample {
        /// Index of the event.
        event: usize,
        /// The sample.
        sample: Sample,
    },
    /// Throttling of an event by the kernel: samples are missing.
    Throttled,
    /// Anything else, by its number.
    Other(u32),
}
