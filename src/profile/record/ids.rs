//! The event of a record, and the ids at the end of records other than samples.

use crate::event::Event;
use pmu::records::format::{SampleFormat, field};

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
    /// Its bytes.
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
