//! Reads the header of a file: offsets of its attributes, records and feature sections. Has the reasons why a file
//! cannot be read.
//!
//! Layouts: `struct perf_file_header` and `struct perf_pipe_file_header` of perf's util/header.h.

use super::features::{self, Features, word};
use crate::event::Event;
use crate::input::Input;
use ruzstd::decoding::errors::FrameDecoderError;
use std::ops::Range;
use std::{fmt, io};
use tma::Cause;

/// Bytes of `struct perf_pipe_file_header`, at the start of pipe mode: magic and this size.
const PIPE_SIZE: u64 = 16;
/// Bytes of `struct perf_file_header`.
const FILE_SIZE: u64 = 104;
/// Offset of its 256 feature bits.
const FEATURE_BITS: usize = 72;

/// Everything outside of the records.
#[derive(Debug, Default)]
pub struct Header {
    /// Events; in pipe mode they are among the records instead.
    pub events: Vec<Event>,
    /// Feature sections.
    pub features: Features,
    /// Offsets of the records.
    pub records: Range<u64>,
    /// Defects that a report must state.
    pub notes: Vec<String>,
    /// Numbers of the features that the file has, as bits.
    bits: [u64; 4],
}

impl Header {
    /// Reads the header of a file.
    pub fn read(file: &Input) -> Result<Self, NoHeader> {
        let start = file.part(0..FILE_SIZE)?;
        match start.first_chunk() {
            Some(b"PERFILE2") => {}
            Some(b"2ELIFREP") => return Err(NoHeader::BigEndian),
            Some(b"PERFFILE") => return Err(NoHeader::Old),
            _ => return Err(NoHeader::Other),
        }
        match word(&start, 8) {
            Some(16) => Ok(Self { records: PIPE_SIZE..file.length(), ..Self::default() }),
            Some(FILE_SIZE..) if file.length() >= FILE_SIZE => Ok(Self::read_file(file, &start)?),
            _ => Err(NoHeader::Cut),
        }
    }

    /// Whether the file has a feature; in pipe mode none is listed.
    pub fn has(&self, feature: u64) -> bool {
        self.bits.get(feature as usize / 64).is_some_and(|bits| bits >> (feature % 64) & 1 == 1)
    }

    fn read_file(file: &Input, start: &[u8]) -> io::Result<Self> {
        let (attributes, data) = (section_at(start, 24), section_at(start, 40));
        let mut header = Self {
            events: events(&file.part(attributes)?, file, word(start, 16).unwrap_or(0)),
            bits: [0, 1, 2, 3].map(|at| word(start, FEATURE_BITS + at * 8).unwrap_or(0)),
            ..Self::default()
        };
        let all = file.length();
        let end = match data.end {
            // perf writes the size last.
            _ if data.is_empty() && data.start < all => {
                header.notes.push(
                    "perf did not end this recording properly: host, kernel and event names are \
                     missing, and its last records may be"
                        .into(),
                );
                all
            }
            end if end > all => {
                let missing = end - all.max(data.start);
                header.notes.push(format!("the file is cut off: {missing} bytes are missing"));
                all
            }
            end => end,
        };
        header.records = data.start.min(end)..end;
        if !data.is_empty() {
            header.read_features(file)?;
        }
        header.features.name(&mut header.events);
        Ok(header)
    }

    /// After the records come offset and size of each feature section, in the order of the bits.
    fn read_features(&mut self, file: &Input) -> io::Result<()> {
        let table = file.part(self.records.end..self.records.end.saturating_add(256 * 16))?;
        let mut sections = table.as_chunks::<16>().0.iter();
        for number in 0..256 {
            if !self.has(number) {
                continue;
            }
            let Some(place) = sections.next() else { break };
            if self.features.uses(number) {
                self.features.take(number, &file.part(section_at(place, 0))?);
            }
        }
        Ok(())
    }
}

/// Events of the attribute section: rows of an attribute, then offset and size of its ids.
fn events(section: &[u8], file: &Input, row: u64) -> Vec<Event> {
    let row = usize::try_from(row).unwrap_or(usize::MAX);
    if row < features::SMALLEST + 16 {
        return Vec::new();
    }
    let read = |row: &[u8]| {
        let mut event = features::from_attribute(row)?;
        let ids = file.part(section_at(row, row.len() - 16)).ok()?;
        event.ids = ids.as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
        Some(event)
    };
    section.chunks_exact(row).map_while(read).collect()
}

/// A section by its offset and size, which are at an offset of `bytes`.
fn section_at(bytes: &[u8], at: usize) -> Range<u64> {
    let offset = word(bytes, at).unwrap_or(0);
    offset..offset.saturating_add(word(bytes, at + 8).unwrap_or(0))
}

/// Why records cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// The disk fails.
    Disk(Cause<io::Error>),
    /// The file ends this many bytes after the start of a record.
    Incomplete(u64),
    /// A record claims fewer bytes than its header has.
    Small(usize),
    /// A record is cut off: its bytes, and those that are there.
    Cut(u64, u64),
    /// A compressed record has less data than it claims.
    Claims,
    /// A record among compressed ones claims fewer bytes than its header has.
    SmallInside(usize),
    /// Compressed bytes expand beyond the limit: their number, and the limit in MiB.
    Bytes(u64, u64),
    /// Compressed bytes expand to too many records: their number, and the limit in records.
    Records(u64, u64),
    /// The compressed data end within a record.
    Ends,
    /// The decoder of compressed data fails.
    Decoder(Cause<FrameDecoderError>),
    /// The output of the decoder cannot be read.
    Output(Cause<io::Error>),
    /// It panicked.
    Stopped,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => write!(f, "it cannot be read: {error}"),
            Self::Incomplete(left) => write!(f, "{left} bytes are an incomplete record"),
            Self::Small(size) => {
                write!(f, "a record claims a size of {size} bytes, less than its header")
            }
            Self::Cut(claimed, left) => {
                write!(f, "a record of {claimed} bytes is cut off after {left}")
            }
            Self::Claims => f.write_str("a compressed record claims more data than it has"),
            Self::SmallInside(size) => {
                write!(f, "a compressed record claims a size of {size} bytes")
            }
            Self::Bytes(taken, given) => {
                write!(f, "{taken} compressed bytes expand to more than {given} MiB")
            }
            Self::Records(taken, count) => {
                write!(f, "{taken} compressed bytes expand to more than {count} records")
            }
            Self::Ends => f.write_str("the compressed records end inside a record"),
            Self::Decoder(error) => write!(f, "compressed data are damaged: {error}"),
            Self::Output(error) => error.fmt(f),
            Self::Stopped => f.write_str("compressed data are damaged: the decoder stopped"),
        }
    }
}

impl From<FrameDecoderError> for Broken {
    fn from(error: FrameDecoderError) -> Self {
        Self::Decoder(error.into())
    }
}

/// Why the start of a file is no header that can be read.
#[derive(Debug)]
pub enum NoHeader {
    /// The disk fails.
    Disk(io::Error),
    /// It was recorded on a big-endian machine.
    BigEndian,
    /// It has the format of perf before 2012.
    Old,
    /// It begins otherwise.
    Other,
    /// It is cut off or damaged.
    Cut,
}

impl fmt::Display for NoHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk(error) => return error.fmt(f),
            Self::BigEndian => "it was recorded on a big-endian machine",
            Self::Old => "its format is that of perf before 2012",
            Self::Other => "it does not begin as a perf.data file does",
            Self::Cut => "its header is cut off or damaged",
        })
    }
}

impl From<io::Error> for NoHeader {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}
