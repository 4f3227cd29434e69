//! The header of a file: offsets of its attributes, records and feature sections.
//!
//! Layouts: `struct perf_file_header` and `struct perf_pipe_file_header` of perf's util/header.h.

use super::attribute::{self, word};
use super::broken::NoHeader;
use super::features::Features;
use crate::event::Event;
use crate::input::Input;
use std::io;
use std::ops::Range;

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
    ///
    /// # Errors
    /// Why it is no header that can be read.
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
    if row < attribute::SMALLEST + 16 {
        return Vec::new();
    }
    let read = |row: &[u8]| {
        let mut event = attribute::parse(row)?;
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
