//! The records of a ring or a file.
//!
//! | file | concern |
//! |---|---|
//! | `decode` | a record's body, by its kind |
//! | `ids` | which event a record is of, and what ids stand at its end |

mod decode;
mod ids;
#[cfg(test)]
mod tests;

pub use decode::{Decoder, decode};

use super::recording::Event;
use super::sample::{self, Malformed, Sample};

/// `enum perf_event_type`: what a record is.
pub mod kind {
    /// A mapping.
    pub const MMAP: u32 = 1;
    /// Records lost.
    pub const LOST: u32 = 2;
    /// A thread's name.
    pub const COMM: u32 = 3;
    /// The end of a thread.
    pub const EXIT: u32 = 4;
    /// Samples are held back.
    pub const THROTTLE: u32 = 5;
    /// They come again.
    pub const UNTHROTTLE: u32 = 6;
    /// A new thread.
    pub const FORK: u32 = 7;
    /// A sample.
    pub const SAMPLE: u32 = 9;
    /// A mapping, with its protection and device or build-id.
    pub const MMAP2: u32 = 10;
    /// Samples lost.
    pub const LOST_SAMPLES: u32 = 13;
    /// The first of those that perf itself writes into its files.
    pub const USER_TYPE_START: u32 = 64;
}

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
        mapping: Mapping,
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
        sample: Box<Sample>,
    },
    /// Throttling of an event by the kernel: samples are missing.
    Throttled,
    /// Anything else, by its number.
    Other(u32),
}

/// Decodes one record of a ring or file: its kind, its header's `misc` and its body.
///
/// # Errors
/// The body ends inside a field.
pub fn decode(kind: u32, misc: u16, body: &[u8], events: &[Event]) -> Result<Record, Malformed> {
    let short = |field| Malformed { field, why: "the record ends inside it".into() };
    let word = |at: usize| {
        let bytes = body.get(at..at + 8).and_then(|b| b.try_into().ok());
        bytes.map(u64::from_le_bytes).ok_or_else(|| short("record"))
    };
    let pair = |at: usize| word(at).map(|w| (w as u32, (w >> 32) as u32));
    let time = body.len().checked_sub(24).and_then(|at| word(at).ok());
    let text = |at: usize| {
        let bytes = body.get(at..).unwrap_or_default().split(|b| *b == 0).next();
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    };
    let _ = sample::decode;
    Ok(match kind {
        10 => {
            let ((pid, tid), start, length) = (pair(0)?, word(8)?, word(16)?);
            let (offset, executable) = (word(24)?, Some(word(56)? & 4 != 0));
            let mapping = Mapping {
                pid,
                tid,
                start,
                length,
                offset,
                path: text(64),
                build_id: (misc & 1 << 14 != 0).then(|| body[36..56].to_vec()),
                executable,
                kernel: misc & 7 == 1,
            };
            Record::Map { time, mapping }
        }
        2 => Record::Lost { count: word(8)? },
        3 => {
            let (pid, tid) = pair(0)?;
            Record::Name { time, pid, tid, name: text(8), exec: misc & 1 << 13 != 0 }
        }
        4 => {
            let ((pid, _), (tid, _)) = (pair(0)?, pair(8)?);
            Record::Exit { time, pid, tid }
        }
        5 => Record::Throttled,
        7 => {
            let ((pid, ppid), (tid, ptid)) = (pair(0)?, pair(8)?);
            Record::Fork { time, child: (pid, tid), parent: (ppid, ptid) }
        }
        9 => {
            let id = word(0)?;
            let (pid, tid) = pair(16)?;
            let event = events.iter().position(|e| e.ids.contains(&id)).unwrap_or(0);
            let sample = Sample {
                id: Some(id),
                ip: Some(word(8)?),
                pid: Some(pid),
                tid: Some(tid),
                time: Some(word(24)?),
                cpu: Some(word(32)? as u32),
                period: Some(word(40)?),
                user: Some(misc & 7 == 2),
                ..Sample::default()
            };
            Record::Sample { event, sample: Box::new(sample) }
        }
        other => Record::Other(other),
    })
}
