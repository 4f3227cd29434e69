//! The records of a ring buffer or a file.
//!
//! | file | concern |
//! |---|---|
//! | `decode` | the body of a record, by its kind |
//! | `order` | records in order of time |
//! | `pass` | passes over the records of a recording |
//!
//! One decoder serves live ring buffers, sessions and perf.data files.

mod decode;
mod order;
mod pass;

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

#[cfg(test)]
mod tests {
    //! Records written by hand after the kernel's header.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::event::Event;
    use pmu::records::format::{SampleFormat, field, misc};
    use pmu::records::kind;

    fn event(sample_type: u64, ids: &[u64]) -> Event {
        let format = SampleFormat { sample_type, sample_id_all: true, ..SampleFormat::default() };
        Event { format, ids: ids.to_vec(), ..Event::default() }
    }

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn with_text(words: &[u64], text: &[u8; 16], trailer: &[u64]) -> Vec<u8> {
        [body(words), text.to_vec(), body(trailer)].concat()
    }

    #[test]
    fn mappings_keep_their_build_id_protection_and_time() {
        let events = [event(field::IP | field::TID | field::TIME, &[])];
        let words = [7 << 32 | 6, 0x1000, 0x2000, 0x3000, 0x0403_0201_0000_0004, 0, 0, 4];
        let mut bytes = with_text(&words, b"/usr/bin/sort\0xx", &[7 << 32 | 6, 99]);
        let record =
            decode(kind::MMAP2, misc::USER | misc::MMAP_BUILD_ID, &bytes, &events).unwrap();
        let mut mapping = Mapping {
            pid: 6,
            tid: 7,
            start: 0x1000,
            length: 0x2000,
            offset: 0x3000,
            path: "/usr/bin/sort".into(),
            build_id: Some(vec![1, 2, 3, 4]),
            executable: Some(true),
            kernel: false,
            inode: None,
        };
        assert_eq!(record, Record::Map { time: Some(99), mapping: mapping.clone().into() });
        bytes.drain(32..64); // the same as MMAP
        let record = decode(kind::MMAP, misc::KERNEL | misc::MMAP_DATA, &bytes, &events).unwrap();
        mapping.build_id = None;
        (mapping.executable, mapping.kernel) = (Some(false), true);
        assert_eq!(record, Record::Map { time: Some(99), mapping: mapping.into() });
    }

    #[test]
    fn threads_come_get_a_name_and_go() {
        let events = [event(field::TIME, &[])];
        let comm = with_text(&[2 << 32 | 1], b"gzip\0\0\0\0\0\0\0\0\0\0\0\0", &[5]);
        let record = decode(kind::COMM, misc::COMM_EXEC, &comm, &events).unwrap();
        let name = "gzip".to_owned();
        assert_eq!(record, Record::Name { time: Some(5), pid: 1, tid: 2, name, exec: true });
        let task = body(&[9 << 32 | 1, 8 << 32 | 2, 4, 5]);
        let fork = decode(kind::FORK, 0, &task, &events).unwrap();
        assert_eq!(fork, Record::Fork { time: Some(5), child: (1, 2), parent: (9, 8) });
        // Without ids at the end of records the time is the record's own.
        let old = [Event::default()];
        let exit = decode(kind::EXIT, 0, &task[..24], &old).unwrap();
        assert_eq!(exit, Record::Exit { time: Some(4), pid: 1, tid: 2 });
    }

    #[test]
    fn losses_are_counted_but_not_what_a_filter_drops() {
        let events = [event(0, &[])];
        let lost = decode(kind::LOST, 0, &body(&[1, 30]), &events).unwrap();
        assert_eq!(lost, Record::Lost { count: 30 });
        let lost = decode(kind::LOST_SAMPLES, 0, &body(&[4]), &events).unwrap();
        assert_eq!(lost, Record::Lost { count: 4 });
        let filtered = decode(kind::LOST_SAMPLES, misc::EXTENDED, &body(&[4]), &events).unwrap();
        assert_eq!(filtered, Record::Other(kind::LOST_SAMPLES));
    }

    #[test]
    fn a_sample_goes_to_the_event_of_its_id() {
        let alike = [event(field::IP | field::ID, &[1, 2]), event(field::IP | field::ID, &[3])];
        let different =
            [event(field::IDENTIFIER, &[1]), event(field::IDENTIFIER | field::ADDR, &[3])];
        let of = |words: &[u64], events| match decode(kind::SAMPLE, 0, &body(words), events) {
            Ok(Record::Sample { event, .. }) => Some(event),
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert_eq!(error.field, "ID");
                None
            }
        };
        assert_eq!(of(&[0xabc, 2], &alike), Some(0));
        assert_eq!(of(&[0xabc, 3], &alike), Some(1));
        assert_eq!(of(&[0xabc, 4], &alike), None, "an id of no event is not guessed");
        assert_eq!(of(&[3, 0xadd], &different), Some(1));
        assert!(Decoder::new(&alike).tells_apart() && Decoder::new(&alike[..1]).tells_apart());
        assert!(!Decoder::new(&[event(field::IP, &[]), event(field::IP, &[])]).tells_apart());
        let mixed = [event(field::IP | field::ID, &[1]), event(field::ID, &[3])];
        assert_eq!(of(&[3, 3], &mixed), None, "the ids stand at different places");
    }

    #[test]
    fn what_is_not_known_is_passed_on_by_its_number() {
        assert_eq!(decode(21, 0, &[], &[]).unwrap(), Record::Other(21));
        assert_eq!(decode(kind::MMAP, 0, &[1, 2], &[Event::default()]).unwrap_err().field, "MMAP");
        assert_eq!(decode(kind::SAMPLE, 0, &[], &[]).unwrap_err().field, "ID");
    }
}
