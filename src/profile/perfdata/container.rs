//! linux-perf-data: takes compressed records apart and puts all of them in order of time.
//!
//! It gets a stream made of attributes of our own and of the records, already known to be whole,
//! since by itself it refuses files with an event it does not know, allocates what a damaged file
//! claims (and the process dies of it), and gives up records already read when the file breaks off.

use super::attribute;
use crate::recording::Event;
use linux_perf_data::linux_perf_event_reader::RawData;
use linux_perf_data::{Error, PerfFileReader, PerfFileRecord};
use pmu::records::format::field;
use std::cell::Cell;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Gives each record (type, misc, body) to `each`, in order of time.
///
/// # Errors
/// The container came upon something that it cannot read; the records before it were given.
pub fn records(
    events: &[Event],
    parts: &[&[u8]],
    mut each: impl FnMut(u32, u16, &[u8]),
) -> Result<(), String> {
    // Nothing is known that makes it panic on what it is given here. If something does, that is no
    // reason for the whole program to end.
    let run = catch_unwind(AssertUnwindSafe(|| run(events, parts, &mut each)));
    run.unwrap_or_else(|_| Err("the reader of the container failed".into()))
}

fn run(
    events: &[Event],
    parts: &[&[u8]],
    each: &mut dyn FnMut(u32, u16, &[u8]),
) -> Result<(), String> {
    let stopped = Cell::new(false);
    let start = start(events);
    let parts = [&[&start[..]], parts].concat();
    let feed = Feed { parts: parts.iter(), current: &[], stopped: &stopped };
    let reader = PerfFileReader::parse_pipe(feed).map_err(|e| why(&e))?;
    let (mut file, mut records) = (reader.perf_file, reader.record_iter);
    let mut result = Ok(());
    loop {
        match records.next_record(&mut file) {
            Ok(Some(PerfFileRecord::EventRecord { record, .. })) => {
                let body = match record.data {
                    RawData::Single(body) => body,
                    RawData::Split(..) => continue, // of rings alone
                };
                each(record.record_type.0, record.misc, body);
            }
            Ok(Some(PerfFileRecord::UserRecord(_))) => {}
            Ok(None) => return result,
            // At the end of its input it gives out what it has read before the error.
            Err(error) if !stopped.replace(true) => result = Err(why(&error)),
            Err(_) => return result,
        }
    }
}

fn why(error: &Error) -> String {
    match error {
        Error::IoError(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// What a stream begins with: its header, the attributes, and a record without meaning, because
/// the container does not look into the first record behind the attributes.
fn start(events: &[Event]) -> Vec<u8> {
    /// Ids of one event: so many fit into a record.
    const MOST: usize = 8000;
    let alike = places(events);
    let mut start = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    let needed = if alike { 1 } else { events.len() };
    for event in &events[..needed.min(events.len())] {
        let ids = &event.ids[..if alike { 0 } else { event.ids.len().min(MOST) }];
        let size = 8 + attribute::SMALLEST + 8 * ids.len();
        start.extend(64_u32.to_le_bytes());
        start.extend([0, 0]);
        start.extend((size as u16).to_le_bytes());
        start.extend(attribute::plain(&event.format));
        start.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    }
    start.extend([68, 0, 0, 0, 0, 0, 8, 0]);
    start
}

/// Whether times stand at the same places in the records of all events, so that one attribute
/// stands for all; or whether the container could not tell the events apart anyway.
fn places(events: &[Event]) -> bool {
    const PLACING: u64 = field::IDENTIFIER
        | field::IP
        | field::TID
        | field::TIME
        | field::ID
        | field::STREAM_ID
        | field::CPU;
    let place = |e: &Event| (e.format.sample_type & PLACING, e.format.sample_id_all);
    let identified = |e: &Event| {
        e.format.sample_type & field::IDENTIFIER != 0
            && e.format.sample_id_all == events[0].format.sample_id_all
    };
    events.iter().all(|e| place(e) == place(&events[0])) || !events.iter().all(identified)
}

/// The parts one after the other, until it is stopped.
struct Feed<'a> {
    parts: std::slice::Iter<'a, &'a [u8]>,
    current: &'a [u8],
    stopped: &'a Cell<bool>,
}

impl Read for Feed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.current.is_empty() {
            match self.parts.next() {
                Some(part) => self.current = part,
                None => return Ok(0),
            }
        }
        if self.stopped.get() {
            return Ok(0);
        }
        self.current.read(buffer)
    }
}
