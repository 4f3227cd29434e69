//! Reads the sequence of records of a file, including those of perf itself. Names of tracepoints are looked up by
//! id in the formats that perf copies into a recording (HEADER_TRACING_DATA): in pipe mode the description of an
//! event may have the id only.
//!
//! Layouts: `struct perf_event_header` of linux/perf_event.h, `enum perf_user_event_type` and the structures next
//! to it of perf's util/event.h, and util/trace-event-info.c.

use super::features::{self, Features, half, until_zero, word};
use super::header::Broken;
use crate::event::Event;
use crate::input::Input;
use pmu::records::raw::Header;
use std::collections::HashMap;
use std::ops::Range;
use std::{fmt, io};

/// Bytes of `struct perf_event_header`.
const HEADER: usize = 8;
/// No record is longer: its size has 16 bits.
const LONGEST: usize = 1 << 16;
/// Bytes that are read at once.
const ROOM: usize = 1 << 18;
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
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
    /// How `perf stat record` counted.
    pub const STAT_CONFIG: u32 = 75;
    /// A count of `perf stat record`.
    pub const STAT: u32 = 76;
    /// The end of an interval of `perf stat record`, or of the run.
    pub const STAT_ROUND: u32 = 77;
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
    pub at: u64,
    /// Its cause.
    pub why: Broken,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} {}", self.at, self.why)
    }
}

/// Reads the records of a file one by one.
#[derive(Debug)]
pub struct Records<'a> {
    input: &'a Input,
    /// Offset of the next record.
    at: u64,
    /// Offset of the end of the last.
    end: u64,
    /// Room for what is read of the file, …
    buffer: Vec<u8>,
    /// … and how much of it was read.
    held: usize,
    /// Offset of its first byte.
    start: u64,
}

impl<'a> Records<'a> {
    /// The records between two offsets of a file.
    pub fn new(input: &'a Input, range: Range<u64>) -> Self {
        let (at, end) = (range.start, range.end.min(input.length()));
        Self { input, at, end, buffer: Vec::new(), held: 0, start: at }
    }

    /// Offset and content of the next record; `None` after the last and after a damage.
    pub fn next(&mut self) -> Option<Result<(u64, Header<'_>), Damage>> {
        let at = self.at;
        let left = self.end.checked_sub(at).filter(|left| *left > 0)?;
        if let Err(error) = self.hold() {
            self.at = self.end;
            return Some(Err(Damage { at, why: Broken::Disk(error.into()) }));
        }
        let rest = &self.buffer[(at - self.start) as usize..self.held];
        match split_record(rest, left) {
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

    /// Reads on, unless the buffer holds the next record whatever its length.
    fn hold(&mut self) -> io::Result<()> {
        let read = self.start + self.held as u64;
        if self.at + LONGEST as u64 <= read || read >= self.end && self.at <= read {
            return Ok(());
        }
        let used = usize::try_from(self.at - self.start).unwrap_or(usize::MAX).min(self.held);
        self.buffer.copy_within(used..self.held, 0);
        self.held -= used;
        self.start = self.at;
        let room = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(ROOM);
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let next = self.start + self.held as u64;
        self.held += self.input.fill(next, &mut self.buffer[self.held..room])?;
        Ok(())
    }
}

/// The record at the start of `rest`, and its length with the data that follow it outside of its size;
/// `left` bytes are left of the file.
fn split_record(rest: &[u8], left: u64) -> Result<(Header<'_>, u64), Broken> {
    let header = word(rest, 0).ok_or(Broken::Incomplete(left))?;
    let (kind, misc, size) = (header as u32, (header >> 32) as u16, (header >> 48) as usize);
    if size < HEADER {
        return Err(Broken::Small(size));
    }
    let body = rest.get(HEADER..size).ok_or(Broken::Cut(size as u64, left))?;
    let data = match kind {
        user::AUXTRACE => word(body, 0).unwrap_or(0),
        // Padded to whole words.
        user::HEADER_TRACING_DATA => u64::from(half(body, 0).unwrap_or(0)).next_multiple_of(8),
        _ => 0,
    };
    let whole = data.saturating_add(size as u64);
    if whole > left {
        return Err(Broken::Cut(whole, left));
    }
    Ok((Header { kind, misc, body }, whole))
}

/// Events among the records, as in pipe mode.
pub fn events(mut records: Records<'_>, features: &mut Features) -> Vec<Event> {
    let mut events = Vec::new();
    let mut tracepoints = HashMap::new();
    let input = records.input;
    while let Some(Ok((at, record))) = records.next() {
        match record.kind {
            user::HEADER_TRACING_DATA => {
                let data = at + (HEADER + record.body.len()) as u64;
                let length = u64::from(half(record.body, 0).unwrap_or(0)).min(MOST);
                tracepoints.extend(names(&input.part(data..data + length).unwrap_or_default()));
            }
            user::HEADER_ATTR => events.extend(event(record.body)),
            user::EVENT_UPDATE => rename(&mut events, record.body),
            _ => take_feature(&record, features),
        }
    }
    for event in events.iter_mut().filter(|event| event.kind == TRACEPOINT) {
        if let Some(name) = tracepoints.get(&event.config) {
            event.name.clone_from(name);
        }
    }
    features.name(&mut events);
    events
}

/// A feature among the records, if it is one.
pub fn take_feature(record: &Header<'_>, features: &mut Features) {
    match record.kind {
        user::HEADER_BUILD_ID => features.take_build_id(record.misc, record.body),
        user::HEADER_FEATURE => {
            if let Some(feature) = word(record.body, 0) {
                features.take(feature, &record.body[8..]);
            }
        }
        _ => {}
    }
}

/// HEADER_ATTR: an attribute, then ids.
fn event(body: &[u8]) -> Option<Event> {
    let mut event = features::from_attribute(body)?;
    let ids = body.get(features::length(body)?..)?;
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

/// Most bytes that are read: the formats of all tracepoints of a kernel have some 5 MB.
const MOST: u64 = 64 << 20;
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// `system:name` by id; of damaged data those before the damage.
fn names(data: &[u8]) -> HashMap<u64, String> {
    let mut found = HashMap::new();
    let _ = read(&mut { data }, &mut found);
    found
}

fn read(rest: &mut &[u8], found: &mut HashMap<u64, String>) -> Option<()> {
    take(rest, MAGIC.len()).filter(|start| *start == MAGIC)?;
    string(rest)?;
    // Byte order, size of a long, size of a page.
    take(rest, 6)?;
    for _ in ["header_page", "header_event"] {
        string(rest)?;
        sized(rest)?;
    }
    for _ in 0..number(rest)? {
        sized(rest)?;
    }
    for _ in 0..number(rest)? {
        let system = string(rest)?;
        for _ in 0..number(rest)? {
            if let Some((id, name)) = format(sized(rest)?) {
                found.insert(id, format!("{system}:{name}"));
            }
        }
    }
    Some(())
}

/// Id and name of a tracepoint's format: `name: sched_switch`, `ID: 320`.
fn format(text: &[u8]) -> Option<(u64, String)> {
    let text = String::from_utf8_lossy(text);
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let name = tma::text::name(field("name: ")?.trim()).into_owned();
    Some((field("ID: ")?.trim().parse().ok()?, name))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn string(rest: &mut &[u8]) -> Option<String> {
    let length = rest.iter().position(|byte| *byte == 0)?;
    let text = take(rest, length + 1)?;
    Some(tma::text::name(&String::from_utf8_lossy(&text[..length])).into_owned())
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    half(take(rest, 4)?, 0)
}

fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = word(take(rest, 8)?, 0)?;
    take(rest, usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text].concat()
    }

    fn data() -> Vec<u8> {
        let format = b"name: sched_switch\nID: 320\nformat:\n\tfield:int x;\n";
        let pieces: [Vec<u8>; 10] = [
            [MAGIC, b"0.6\0", &[0, 8], &4096_u32.to_le_bytes()].concat(),
            b"header_page\0".to_vec(),
            sized(b"page"),
            b"header_event\0".to_vec(),
            sized(b"event"),
            0_u32.to_le_bytes().to_vec(),
            1_u32.to_le_bytes().to_vec(),
            b"sched\0".to_vec(),
            1_u32.to_le_bytes().to_vec(),
            sized(format),
        ];
        pieces.concat()
    }

    #[test]
    fn a_tracepoint_has_its_system_and_name() {
        assert_eq!(names(&data()), HashMap::from([(320, "sched:sched_switch".to_owned())]));
    }

    #[test]
    fn damaged_data_have_no_names_and_end() {
        let whole = data();
        for length in 0..whole.len() {
            assert!(names(&whole[..length]).is_empty(), "{length}");
        }
        let many = [&whole[..whole.len() - 80], &[0xff; 80]].concat();
        assert!(names(&many).len() <= 1);
    }
}
