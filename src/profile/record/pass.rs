//! Passes over the records of a recording: one that looks at times and losses, and as many as are needed
//! that decode the records and put them in order of time.

use super::Record;
use super::decode::Decoder;
use super::order::{Bounds, Sorter};
use crate::event::Event;
use crate::sample::Malformed;
use pmu::records::kind;
use pmu::records::raw::Header;
use tma::text::several;

/// The first pass.
#[derive(Debug)]
pub struct Scan {
    decoder: Decoder,
    bounds: Bounds,
    /// Samples of each event.
    pub samples: Vec<u64>,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Times that the kernel throttled an event.
    pub throttled: u64,
}

impl Scan {
    /// For records of these events.
    pub fn new(events: &[Event]) -> Self {
        let decoder = Decoder::new(events);
        let samples = vec![0; events.len()];
        Self { decoder, bounds: Bounds::default(), samples, lost: 0, throttled: 0 }
    }

    /// Takes the next record and returns the time it is ordered by: its own, or `otherwise` if it
    /// has none.
    pub fn take(&mut self, header: &Header<'_>, otherwise: u64) -> u64 {
        let time = self.decoder.time(header).unwrap_or(otherwise);
        self.bounds.note(time);
        match header.kind {
            kind::SAMPLE => {
                let event = self.decoder.event(header);
                if let Some(samples) = event.and_then(|event| self.samples.get_mut(event)) {
                    *samples += 1;
                }
            }
            kind::THROTTLE => self.throttled += 1,
            kind::LOST | kind::LOST_SAMPLES => {
                let record = self.decoder.decode(header.kind, header.misc, header.body);
                if let Ok(Record::Lost { count }) = record {
                    self.lost = self.lost.saturating_add(count);
                }
            }
            _ => {}
        }
        time
    }

    /// State for later passes.
    pub fn finish(self) -> (Decoder, Bounds) {
        (self.decoder, self.bounds.finish())
    }
}

/// A later pass.
pub struct Pass<'a> {
    decoder: &'a Decoder,
    sorter: Sorter<'a>,
    visit: &'a mut dyn FnMut(Record),
    decoded: Decoded,
}

/// Totals and failures of decoding.
#[derive(Default)]
struct Decoded {
    samples: u64,
    /// Records that could not be decoded, and the reason of the first.
    malformed: Option<(u64, Malformed)>,
    /// Samples with fields that this version does not know.
    unread: u64,
}

impl<'a> Pass<'a> {
    /// Calls `visit` with samples, mappings, names, starts and ends, in order of time.
    pub fn new(decoder: &'a Decoder, bounds: &'a Bounds, visit: &'a mut dyn FnMut(Record)) -> Self {
        Self { decoder, sorter: Sorter::new(bounds), visit, decoded: Decoded::default() }
    }

    /// As [`Scan::take`].
    pub fn take(&mut self, header: &Header<'_>, otherwise: u64) -> u64 {
        let time = self.decoder.time(header).unwrap_or(otherwise);
        let Self { decoder, sorter, visit, decoded } = self;
        let mut decode = |header: &Header<'_>| decoded.take(decoder, header, *visit);
        let has_order = matches!(
            header.kind,
            kind::SAMPLE | kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::EXIT
        );
        if !has_order {
            decode(header);
        }
        sorter.take(time, has_order.then_some(header), &mut decode);
        time
    }

    /// Passes on the last records, and returns the limits of the records that a report must state.
    pub fn finish(self) -> Vec<String> {
        let Self { decoder, sorter, visit, mut decoded } = self;
        let late = sorter.finish(&mut |header| decoded.take(decoder, header, visit));
        let mut notes = Vec::new();
        if !decoder.tells_apart() {
            notes.push(
                "the samples do not identify which of several events they belong to: all count as \
                 the first"
                    .into(),
            );
        }
        if let Some((count, first)) = &decoded.malformed {
            notes.push(format!(
                "{} could not be decoded; the first: {first}",
                several(*count, "record")
            ));
        }
        if decoded.unread > 0 {
            let (unread, samples) = (decoded.unread, decoded.samples);
            notes.push(format!(
                "{unread} of {samples} samples have fields that this version does not know; they \
                 are left out"
            ));
        }
        if late > 0 {
            notes.push(format!(
                "{late} records are too far from their place in the order of time: mappings and \
                 names may be those of another time"
            ));
        }
        notes
    }
}

impl Decoded {
    fn take(&mut self, decoder: &Decoder, header: &Header<'_>, visit: &mut dyn FnMut(Record)) {
        match decoder.decode(header.kind, header.misc, header.body) {
            Ok(Record::Lost { .. } | Record::Throttled | Record::Other(_)) => {}
            Ok(record) => {
                if let Record::Sample { sample, .. } = &record {
                    self.samples += 1;
                    self.unread += u64::from(sample.unread > 0);
                }
                visit(record);
            }
            Err(error) => self.malformed.get_or_insert((0, error)).0 += 1,
        }
    }
}
