//! Which event a record is of, and what ids stand at the end of records that are no samples.

use crate::recording::Event;
use pmu::records::format::{SampleFormat, field};

/// Fields of `struct sample_id`, all 8 bytes, in their order.
const TRAILER: [u64; 6] =
    [field::TID, field::TIME, field::ID, field::STREAM_ID, field::CPU, field::IDENTIFIER];

/// Where the id of a sample stands, in bytes from the body's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// There is one event only, or none of them has an id.
    Needless,
    /// At the same offset in all.
    At(usize),
    /// At different offsets: perf does not write such files.
    Anywhere,
}

/// Finds the event of a record, and its time.
#[derive(Debug, Clone)]
pub struct Ids {
    /// Ids in order, with their events.
    events: Vec<(u64, usize)>,
    place: Place,
    /// Bytes of `struct sample_id`, and of them from TIME to the end; of the first event, as the
    /// kernel wants it alike in all.
    trailer: usize,
    time: Option<usize>,
}

impl Ids {
    /// Of the events of one recording.
    pub fn new(events: &[Event]) -> Self {
        let first = events.first().map(|e| e.format).unwrap_or_default();
        let size =
            |fields: &[u64]| 8 * fields.iter().filter(|f| first.sample_type & **f != 0).count();
        let mut ids: Vec<(u64, usize)> = events
            .iter()
            .enumerate()
            .flat_map(|(index, event)| event.ids.iter().map(move |id| (*id, index)))
            .collect();
        ids.sort_unstable();
        Self {
            events: ids,
            place: place(events),
            trailer: if first.sample_id_all { size(&TRAILER) } else { 0 },
            time: (first.sample_id_all && first.sample_type & field::TIME != 0)
                .then(|| size(&TRAILER[1..])),
        }
    }

    /// Whether samples tell which of these events they are of.
    pub fn tell_apart(&self, events: usize) -> bool {
        events < 2 || matches!(self.place, Place::At(_))
    }

    /// Index of the event that a sample is of; `None` if its id is of none.
    pub fn event(&self, body: &[u8]) -> Option<usize> {
        let at = match self.place {
            Place::Needless => return Some(0),
            Place::Anywhere => return None,
            Place::At(at) => at,
        };
        let id = u64::from_le_bytes(*body.get(at..)?.first_chunk()?);
        if id == 0 {
            return Some(0); // perf's own synthetic records
        }
        let found = self.events.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.events[found].1)
    }

    /// The body of a record other than a sample without the ids at its end, and its time.
    pub fn split<'a>(&self, body: &'a [u8]) -> (&'a [u8], Option<u64>) {
        let Some(length) = body.len().checked_sub(self.trailer) else { return (body, None) };
        let time = self.time.and_then(|from_end| body.get(body.len() - from_end..)?.first_chunk());
        (&body[..length], time.map(|bytes| u64::from_le_bytes(*bytes)))
    }
}

fn place(events: &[Event]) -> Place {
    let Some((first, others)) = events.split_first() else { return Place::Needless };
    if others.is_empty() || events.iter().all(|e| e.ids.is_empty()) {
        return Place::Needless;
    }
    match offset(&first.format) {
        Some(at) if others.iter().all(|e| offset(&e.format) == Some(at)) => Place::At(at),
        None if others.iter().all(|e| offset(&e.format).is_none()) => Place::Needless,
        _ => Place::Anywhere,
    }
}

/// Offset of the id in a sample.
fn offset(format: &SampleFormat) -> Option<usize> {
    let has = |bit: &u64| format.sample_type & bit != 0;
    if has(&field::IDENTIFIER) {
        return Some(0);
    }
    let before = [field::IP, field::TID, field::TIME, field::ADDR];
    has(&field::ID).then(|| 8 * before.iter().filter(|f| has(f)).count())
}
