//! Decodes the body of a record, by its kind; its event, and the ids at the end of records other than samples.

use super::{Mapping, Record};
use crate::event::Event;
use crate::sample::{self, Cursor, Malformed};
use pmu::records::format::{SampleFormat, field, misc as header};
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

/// Fields of `struct sample_id`, 8 bytes each, in their order.
const TRAILER: [u64; 6] =
    [field::TID, field::TIME, field::ID, field::STREAM_ID, field::CPU, field::IDENTIFIER];

/// Offset of the event's id in the body of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdOffset {
    /// Not needed: there is only one event, or none of them has an id.
    Unneeded,
    /// At this offset for all events.
    At(usize),
    /// Different for some: perf writes no such files.
    Ambiguous,
}

/// `struct sample_id` at the end of the records of one event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Trailer {
    size: usize,
    /// Bytes from TIME to the end of the record; `None` without TIME.
    time: Option<usize>,
}

/// Finds the event and the time of a record.
#[derive(Debug, Clone)]
pub struct Ids {
    /// Ids in ascending order, with the index of their event.
    events: Vec<(u64, usize)>,
    offset: IdOffset,
    /// For each event.
    trailers: Vec<Trailer>,
    /// Offset of the time in the body of a sample of each event.
    times: Vec<Option<usize>>,
    /// Whether the last word of every record is the id of its event.
    identified: bool,
}

impl Ids {
    /// For the events of one recording.
    pub fn new(events: &[Event]) -> Self {
        let ids_of = |(index, event): (usize, &Event)| {
            event.ids.iter().map(move |id| (*id, index)).collect::<Vec<_>>()
        };
        let mut ids: Vec<(u64, usize)> = events.iter().enumerate().flat_map(ids_of).collect();
        ids.sort_unstable();
        let identified = |format: &SampleFormat| {
            format.sample_id_all && format.sample_type & field::IDENTIFIER != 0
        };
        Self {
            events: ids,
            offset: id_offset(events),
            trailers: events.iter().map(|e| Trailer::of(&e.format)).collect(),
            times: events.iter().map(|e| time_offset(&e.format)).collect(),
            identified: events.iter().all(|e| identified(&e.format)),
        }
    }

    /// Whether samples identify which of `events` events they belong to.
    pub fn tell_apart(&self, events: usize) -> bool {
        events < 2 || matches!(self.offset, IdOffset::At(_))
    }

    /// Index of a sample's event; `None` if its id belongs to no event.
    pub fn event(&self, body: &[u8]) -> Option<usize> {
        let at = match self.offset {
            IdOffset::Unneeded => return Some(0),
            IdOffset::Ambiguous => return None,
            IdOffset::At(at) => at,
        };
        match u64::from_le_bytes(*body.get(at..)?.first_chunk()?) {
            0 => Some(0), // perf's own synthetic records
            id => self.event_of(id),
        }
    }

    /// The time of a sample.
    pub fn time_of_sample(&self, body: &[u8]) -> Option<u64> {
        let at = (*self.times.get(self.event(body)?)?)?;
        Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?))
    }

    fn event_of(&self, id: u64) -> Option<usize> {
        let found = self.events.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.events[found].1)
    }

    /// The body of a record other than a sample without the ids at its end, and its time.
    pub fn split<'a>(&self, body: &'a [u8]) -> (&'a [u8], Option<u64>) {
        let trailer = self.trailer(body);
        let Some(length) = body.len().checked_sub(trailer.size) else { return (body, None) };
        let time = trailer.time.and_then(|from_end| body.get(body.len() - from_end..));
        let time = time.and_then(|bytes| bytes.first_chunk());
        (&body[..length], time.map(|bytes| u64::from_le_bytes(*bytes)))
    }

    /// The trailer of a record: that of its event where it names one, else the first event's.
    fn trailer(&self, body: &[u8]) -> Trailer {
        let event = self.identified.then(|| body.last_chunk()).flatten();
        let event = event.and_then(|id| self.event_of(u64::from_le_bytes(*id)));
        self.trailers.get(event.unwrap_or(0)).copied().unwrap_or_default()
    }
}

impl Trailer {
    fn of(format: &SampleFormat) -> Self {
        if !format.sample_id_all {
            return Self::default();
        }
        let has = |bit: &&u64| format.sample_type & **bit != 0;
        let size = |fields: &[u64]| 8 * fields.iter().filter(has).count();
        Self { size: size(&TRAILER), time: has(&&field::TIME).then(|| size(&TRAILER[1..])) }
    }
}

fn id_offset(events: &[Event]) -> IdOffset {
    let Some((first, others)) = events.split_first() else { return IdOffset::Unneeded };
    if others.is_empty() || events.iter().all(|e| e.ids.is_empty()) {
        return IdOffset::Unneeded;
    }
    match offset(&first.format) {
        Some(at) if others.iter().all(|e| offset(&e.format) == Some(at)) => IdOffset::At(at),
        None if others.iter().all(|e| offset(&e.format).is_none()) => IdOffset::Unneeded,
        _ => IdOffset::Ambiguous,
    }
}

/// Offset of the time in a sample of this format.
fn time_offset(format: &SampleFormat) -> Option<usize> {
    let has = |bit: &u64| format.sample_type & bit != 0;
    let before = [field::IDENTIFIER, field::IP, field::TID];
    has(&field::TIME).then(|| 8 * before.iter().filter(|f| has(f)).count())
}

/// Offset of the id in a sample of this format.
fn offset(format: &SampleFormat) -> Option<usize> {
    let has = |bit: &u64| format.sample_type & bit != 0;
    if has(&field::IDENTIFIER) {
        return Some(0);
    }
    let before = [field::IP, field::TID, field::TIME, field::ADDR];
    has(&field::ID).then(|| 8 * before.iter().filter(|f| has(f)).count())
}
