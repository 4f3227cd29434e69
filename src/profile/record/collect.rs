//! All records of a recording: decoded, counted, and put in order of time.

use super::decode::Decoder;
use super::kinds::Record;
use crate::event::Event;
use crate::sample::Malformed;
use pmu::records::raw::Header;

/// Takes the records of a recording as they come.
#[derive(Debug)]
pub struct Collector {
    decoder: Decoder,
    /// Samples, mappings, names, starts and ends, with the time they are ordered by.
    records: Vec<(u64, Record)>,
    /// Samples taken.
    pub samples: u64,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Times that the kernel throttled an event.
    pub throttled: u64,
    /// Records that could not be decoded, and the reason of the first.
    malformed: Option<(u64, Malformed)>,
    /// Samples with fields that this version does not know.
    unread: u64,
}

impl Collector {
    /// For records of these events.
    pub fn new(events: &[Event]) -> Self {
        Self {
            decoder: Decoder::new(events),
            records: Vec::new(),
            samples: 0,
            lost: 0,
            throttled: 0,
            malformed: None,
            unread: 0,
        }
    }

    /// Takes the next record and returns the time it is ordered by: its own, or `otherwise` if it
    /// has none.
    pub fn take(&mut self, header: &Header<'_>, otherwise: u64) -> u64 {
        let record = match self.decoder.decode(header.kind, header.misc, header.body) {
            Ok(record) => record,
            Err(error) => {
                self.malformed.get_or_insert((0, error)).0 += 1;
                return otherwise;
            }
        };
        // As perf does (util/ordered-events.c): -1 is no time either.
        let time = record.time().filter(|time| *time != u64::MAX).unwrap_or(otherwise);
        match &record {
            Record::Lost { count } => self.lost = self.lost.saturating_add(*count),
            Record::Throttled => self.throttled += 1,
            Record::Other(_) => {}
            Record::Sample { sample, .. } => {
                self.samples += 1;
                self.unread += u64::from(sample.unread > 0);
                self.records.push((time, record));
            }
            _ => self.records.push((time, record)),
        }
        time
    }

    /// Limits of the records that a report must state.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.decoder.tells_apart() {
            notes.push(
                "the samples do not identify which of several events they belong to: all count as \
                 the first"
                    .into(),
            );
        }
        if let Some((count, first)) = &self.malformed {
            notes.push(format!("{count} records could not be decoded; the first: {first}"));
        }
        if self.unread > 0 {
            let (unread, samples) = (self.unread, self.samples);
            notes.push(format!(
                "{unread} of {samples} samples have fields that this version does not know; they \
                 are left out"
            ));
        }
        notes
    }

    /// The records in order of time; those of the same time in the order they came.
    pub fn into_records(mut self) -> Vec<Record> {
        self.records.sort_by_key(|(time, _)| *time);
        self.records.into_iter().map(|(_, record)| record).collect()
    }
}
