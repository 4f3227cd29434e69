//! Decodes the body of a record, by its kind.

use super::ids::Ids;
use super::kinds::{Mapping, Record};
use crate::event::Event;
use crate::sample::cursor::Cursor;
use crate::sample::{self, Malformed};
use pmu::records::format::{SampleFormat, misc as header};
use pmu::records::kind;
use pmu::records::raw::Header;

/// `PROT_EXEC` of mmap(2).
const PROT_EXEC: u32 = 4;

/// Decodes the records of one recording.
#[derive(Debug, Clone)]
pub struct Decoder {
    formats: Vec<SampleFormat>,
    ids: Ids,
}

/// Decodes one record; for many, make a [`Decoder`] once.
///
/// # Errors
/// As [`Decoder::decode`].
pub fn decode(kind: u32, misc: u16, body: &[u8], events: &[Event]) -> Result<Record, Malformed> {
    Decoder::new(events).decode(kind, misc, body)
}

impl Decoder {
    /// For the records of these events.
    pub fn new(events: &[Event]) -> Self {
        Self { formats: events.iter().map(|e| e.format).collect(), ids: Ids::new(events) }
    }

    /// Whether samples identify their event. If not, those of events with the same layout count as
    /// the first event's, and others cannot be decoded.
    pub fn tells_apart(&self) -> bool {
        self.ids.tell_apart(self.formats.len())
    }

    /// The event of a sample; `None` if its id belongs to none.
    pub fn event(&self, header: &Header<'_>) -> Option<usize> {
        self.ids.event(header.body)
    }

    /// The time of a record, without decoding it; `None` for those without one and those that are only
    /// counted.
    pub fn time(&self, header: &Header<'_>) -> Option<u64> {
        let time = match header.kind {
            kind::SAMPLE => self.ids.time_of_sample(header.body),
            kind::FORK | kind::EXIT => {
                let (body, time) = self.ids.split(header.body);
                time.or_else(|| word(body, 16))
            }
            kind::MMAP | kind::MMAP2 | kind::COMM => self.ids.split(header.body).1,
            _ => None,
        };
        // As perf does (util/ordered-events.c): -1 is no time either.
        time.filter(|time| *time != u64::MAX)
    }

    /// Decodes the body (what follows the 8 bytes of the header) of a record whose header has this
    /// `type` and `misc`. Little endian.
    ///
    /// # Errors
    /// The body ends inside a field, or a sample's id belongs to no event.
    pub fn decode(&self, kind: u32, misc: u16, body: &[u8]) -> Result<Record, Malformed> {
        if kind == kind::SAMPLE {
            return self.sample(misc, body);
        }
        let (body, time) = self.ids.split(body);
        let mut cursor = Cursor::new(body);
        Ok(match kind {
            kind::MMAP | kind::MMAP2 => {
                Record::Map { time, mapping: Box::new(mapping(kind, misc, &mut cursor)?) }
            }
            kind::COMM => {
                let (pid, tid) = (cursor.u32("COMM")?, cursor.u32("COMM")?);
                let exec = misc & header::COMM_EXEC != 0;
                Record::Name { time, pid, tid, name: text(&mut cursor), exec }
            }
            kind::FORK | kind::EXIT => task(kind, time, &mut cursor)?,
            kind::LOST => {
                cursor.u64("LOST")?; // id of the event
                Record::Lost { count: cursor.u64("LOST")? }
            }
            kind::LOST_SAMPLES if misc & header::EXTENDED == 0 => {
                Record::Lost { count: cursor.u64("LOST_SAMPLES")? }
            }
            kind::THROTTLE => Record::Throttled,
            other => Record::Other(other),
        })
    }

    fn sample(&self, misc: u16, body: &[u8]) -> Result<Record, Malformed> {
        let unknown = || Malformed { field: "ID", why: "belongs to no event".into() };
        let event = self.ids.event(body).ok_or_else(unknown)?;
        let format = self.formats.get(event).ok_or_else(unknown)?;
        Ok(Record::Sample { event, sample: sample::decode(body, misc, format)? })
    }
}

/// The word at an offset of a body.
fn word(body: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?))
}

/// FORK and EXIT: pid, parent's pid, tid, parent's tid, time.
fn task(kind: u32, time: Option<u64>, body: &mut Cursor) -> Result<Record, Malformed> {
    let name = if kind == kind::FORK { "FORK" } else { "EXIT" };
    let (pid, parent_pid) = (body.u32(name)?, body.u32(name)?);
    let (tid, parent_tid) = (body.u32(name)?, body.u32(name)?);
    let time = time.or_else(|| body.u64(name).ok());
    Ok(if kind == kind::FORK {
        Record::Fork { time, child: (pid, tid), parent: (parent_pid, parent_tid) }
    } else {
        Record::Exit { time, pid, tid }
    })
}

fn mapping(kind: u32, misc: u16, body: &mut Cursor) -> Result<Mapping, Malformed> {
    let name = if kind == kind::MMAP { "MMAP" } else { "MMAP2" };
    let kernel = misc & header::CPUMODE_MASK == header::KERNEL;
    let mut mapping = Mapping {
        pid: body.u32(name)?,
        tid: body.u32(name)?,
        start: body.u64(name)?,
        length: body.u64(name)?,
        offset: body.u64(name)?,
        executable: Some(misc & header::MMAP_DATA == 0),
        kernel,
        ..Mapping::default()
    };
    if kind == kind::MMAP2 {
        let identity = body.bytes(24, name)?;
        if misc & header::MMAP_BUILD_ID != 0 {
            let length = usize::from(identity[0]).min(20);
            mapping.build_id = Some(identity[4..4 + length].to_vec());
        } else {
            // Major and minor number of the device, inode, its generation.
            mapping.inode = word(identity, 8).filter(|inode| *inode != 0);
        }
        let protection = body.u32(name)?;
        body.u32(name)?; // flags
        // perf synthesizes the kernel's mappings without a protection.
        if !(kernel && protection == 0) {
            mapping.executable = Some(protection & PROT_EXEC != 0);
        }
    }
    mapping.path = text(body);
    Ok(mapping)
}

/// The rest of the body, up to the first zero byte, as people may see it. (A file whose path has control
/// characters is then not found.)
fn text(body: &mut Cursor) -> String {
    let bytes = body.bytes(body.left() as u64, "").unwrap_or_default();
    let text = bytes.split(|b| *b == 0).next().unwrap_or_default();
    tma::text::name(&String::from_utf8_lossy(text)).into_owned()
}
