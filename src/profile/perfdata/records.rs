//! The sequence of records of a file, including those of perf itself.
//!
//! Layouts: `struct perf_event_header` of linux/perf_event.h, `enum perf_user_event_type` and the
//! structures next to it of perf's util/event.h.

use super::attribute::{self, half, word};
use super::features::{Features, until_zero};
use crate::event::Event;
use pmu::records::raw::Header;
use std::fmt;

/// Bytes of `struct perf_event_header`.
const HEADER: usize = 8;
/// `PERF_EVENT_UPDATE__NAME`.
const UPDATE_NAME: u64 = 2;

/// Types of perf's own records.
pub mod user {
    /// An event, in pipe mode.
    pub const HEADER_ATTR: u32 = 64;
    /// Tracepoint formats; their data follow the record.
    pub const HEADER_TRACING_DATA: u32 = 66;
    /// A build-id, in pipe mode.
    pub const HEADER_BUILD_ID: u32 = 67;
    /// All ring buffers were read once: no later record is older than the round before this one.
    pub const FINISHED_ROUND: u32 = 68;
    /// Output of a hardware trace, which follows the record.
    pub const AUXTRACE: u32 = 71;
    /// The name, unit or scale of an event, in pipe mode.
    pub const EVENT_UPDATE: u32 = 78;
    /// A feature section, in pipe mode.
    pub const HEADER_FEATURE: u32 = 80;
    /// Compressed records.
    pub const COMPRESSED: u32 = 81;
    /// Compressed records with their size, padded (Linux 6.16).
    pub const COMPRESSED2: u32 = 83;
}

/// The offset from which records cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the file.
    pub at: usize,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} {}", self.at, self.why)
    }
}

/// Iterates over the records of a file.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    file: &'a [u8],
    /// Offset of the next record.
    at: usize,
    /// Offset of the end of the last.
    end: usize,
}

impl<'a> Records<'a> {
    /// The records between two offsets of `file`.
    pub fn new(file: &'a [u8], range: std::ops::Range<usize>) -> Self {
        Self { file, at: range.start, end: range.end.min(file.len()) }
    }

    /// Offset of the end of the last record.
    pub fn end(&self) -> usize {
        self.end
    }
}

impl<'a> Iterator for Records<'a> {
    /// The offset of a record, and the record.
    type Item = Result<(usize, Header<'a>), Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.file.get(self.at..self.end).filter(|rest| !rest.is_empty())?;
        let at = self.at;
        match split_record(rest) {
            Ok((record, size)) => {
                self.at += size;
                Some(Ok((at, record)))
            }
            Err(why) => {
                self.at = self.end;
                Some(Err(Damage { at, why }))
            }
        }
    }
}

/// The record at the start of `rest`, and its length with the data that follow it outside of its size.
fn split_record(rest: &[u8]) -> Result<(Header<'_>, usize), String> {
    let Some(header) = word(rest, 0) else {
        return Err(format!("{} bytes are an incomplete record", rest.len()));
    };
    let (kind, misc, size) = (header as u32, (header >> 32) as u16, (header >> 48) as usize);
    if size < HEADER {
        return Err(format!("a record claims a size of {size} bytes, less than its header"));
    }
    let cut = |claimed: u64| format!("a record of {claimed} bytes is cut off after {}", rest.len());
    let body = rest.get(HEADER..size).ok_or_else(|| cut(size as u64))?;
    let data = match kind {
        user::AUXTRACE => word(body, 0).unwrap_or(0),
        // Padded to whole words.
        user::HEADER_TRACING_DATA => u64::from(half(body, 0).unwrap_or(0)).next_multiple_of(8),
        _ => 0,
    };
    let whole = data.saturating_add(size as u64);
    if whole > rest.len() as u64 {
        return Err(cut(whole));
    }
    Ok((Header { kind, misc, body }, whole as usize))
}

/// Events and features among the records, as in pipe mode.
pub fn metadata(records: Records<'_>, features: &mut Features) -> Vec<Event> {
    let mut events = Vec::new();
    for (_, record) in records.map_while(Result::ok) {
        match record.kind {
            user::HEADER_ATTR => events.extend(event(record.body)),
            user::HEADER_BUILD_ID => features.take_build_id(record.misc, record.body),
            user::HEADER_FEATURE => {
                if let Some(feature) = word(record.body, 0) {
                    features.take(feature, &record.body[8..]);
                }
            }
            user::EVENT_UPDATE => rename(&mut events, record.body),
            _ => {}
        }
    }
    features.name(&mut events);
    events
}

/// HEADER_ATTR: an attribute, then ids.
fn event(body: &[u8]) -> Option<Event> {
    let mut event = attribute::parse(body)?;
    let ids = body.get(attribute::length(body)?..)?;
    event.ids = ids.as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
    Some(event)
}

/// EVENT_UPDATE: what is updated, the event's id, the text.
fn rename(events: &mut [Event], body: &[u8]) {
    let (Some(UPDATE_NAME), Some(id)) = (word(body, 0), word(body, 8)) else { return };
    if let Some(event) = events.iter_mut().find(|e| e.ids.contains(&id)) {
        event.name = until_zero(&body[16..]);
    }
}
