//! The row of records: how far whole records reach, and what perf itself put among them.

use super::attribute::{self, half, word};
use super::expansion::Expansion;
use super::features::{Features, until_zero};
use crate::recording::Event;
use pmu::records::kind::USER_TYPE_START;
use std::ops::Range;

/// Bytes of `struct perf_event_header`.
const HEADER: usize = 8;

/// `enum perf_user_event_type` of perf's util/event.h.
mod user {
    pub const HEADER_ATTR: u32 = 64;
    pub const HEADER_TRACING_DATA: u32 = 66;
    pub const HEADER_BUILD_ID: u32 = 67;
    pub const FINISHED_ROUND: u32 = 68;
    pub const AUXTRACE: u32 = 71;
    pub const EVENT_UPDATE: u32 = 78;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// `PERF_EVENT_UPDATE__NAME`.
const UPDATE_NAME: u64 = 2;

/// The records of a file, looked through once.
#[derive(Debug, Default)]
pub struct Stream<'a> {
    /// Stretches of records that the container is to read.
    pub parts: Vec<&'a [u8]>,
    /// Events that came among them, which they do in pipe mode.
    pub events: Vec<Event>,
    /// Where the row breaks off and why.
    pub damage: Option<String>,
    /// Bytes behind that place.
    pub unread: usize,
}

impl<'a> Stream<'a> {
    /// Looks through the records in `range` of the file.
    pub fn read(file: &'a [u8], range: Range<usize>, features: &mut Features) -> Self {
        let mut stream = Self::default();
        let (mut at, end) = (range.start, range.end);
        let mut expansion = Expansion::default();
        let mut start = at; // of what the container gets next
        while at < end {
            let whole = record(&file[at..end]);
            let next = match whole.and_then(|size| bounded(&file[at..at + size], &mut expansion)) {
                Ok(size) => at + size,
                Err(why) => {
                    stream.damage = Some(format!("at byte {at} {why}"));
                    stream.unread = end - at;
                    break;
                }
            };
            if !stream.take(&file[at..next], features) {
                stream.keep(&file[start..at]);
                start = next;
            }
            at = next;
        }
        stream.keep(&file[start..at]);
        features.name(&mut stream.events);
        stream
    }

    fn keep(&mut self, part: &'a [u8]) {
        if !part.is_empty() {
            self.parts.push(part);
        }
    }

    /// Looks at one record. False if the container has no use for it.
    fn take(&mut self, record: &[u8], features: &mut Features) -> bool {
        let (header, body) = record.split_at(HEADER);
        let kind = half(header, 0).unwrap_or(0);
        match kind {
            user::FINISHED_ROUND | user::COMPRESSED | user::COMPRESSED2 => return true,
            user::HEADER_ATTR => self.take_event(body),
            user::HEADER_BUILD_ID => {
                features.take_build_id((word(header, 0).unwrap_or(0) >> 32) as u16, body);
            }
            user::HEADER_FEATURE => {
                if let Some(feature) = word(body, 0) {
                    features.take(feature, &body[8..]);
                }
            }
            user::EVENT_UPDATE => self.take_name(body),
            _ => {}
        }
        kind < USER_TYPE_START
    }

    /// An attribute and ids.
    fn take_event(&mut self, body: &[u8]) {
        let (Some(mut event), Some(length)) = (attribute::parse(body), attribute::length(body))
        else {
            return;
        };
        event.ids = body[length..].as_chunks().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
        self.events.push(event);
    }

    /// What is told, the event's id, the text.
    fn take_name(&mut self, body: &[u8]) {
        let (Some(UPDATE_NAME), Some(id)) = (word(body, 0), word(body, 8)) else { return };
        let named = self.events.iter_mut().find(|e| e.ids.contains(&id));
        if let Some(event) = named {
            event.name = until_zero(&body[16..]);
        }
    }
}

/// The size of a whole record, if what it holds does not expand too far.
fn bounded(record: &[u8], expansion: &mut Expansion) -> Result<usize, String> {
    match half(record, 0) {
        Some(user::COMPRESSED) => expansion.take(&record[HEADER..], false)?,
        Some(user::COMPRESSED2) => expansion.take(&record[HEADER..], true)?,
        _ => {}
    }
    Ok(record.len())
}

/// Bytes of the record at the start of `rest`, with what stands behind it but does not count to
/// its size.
fn record(rest: &[u8]) -> Result<usize, String> {
    let Some(header) = word(rest, 0) else {
        return Err(format!("{} bytes are no whole record", rest.len()));
    };
    let size = (header >> 48) as usize;
    if size < HEADER {
        return Err(format!("a record claims a size of {size} bytes, less than its header"));
    }
    let cut = |claimed: u64| format!("a record of {claimed} bytes is cut off after {}", rest.len());
    let body = rest.get(HEADER..size).ok_or_else(|| cut(size as u64))?;
    let more = match header as u32 {
        user::AUXTRACE => word(body, 0).unwrap_or(0),
        // Padded to whole words.
        user::HEADER_TRACING_DATA => u64::from(half(body, 0).unwrap_or(0)).next_multiple_of(8),
        _ => 0,
    };
    let whole = more.saturating_add(size as u64);
    if whole > rest.len() as u64 {
        return Err(cut(whole));
    }
    Ok(whole as usize)
}
