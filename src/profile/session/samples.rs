//! The chunks that samples need.

use crate::event::Event;
use pmu::records::format::SampleFormat;
use serde::{Deserialize, Serialize};

/// Bytes before the records in a chunk of them.
const BATCH_HEADER: usize = 16;
/// CPU of records that belong to no ring buffer.
const NO_CPU: u32 = u32::MAX;

/// The sampled events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampledEvents {
    /// The events.
    pub events: Vec<SampledEvent>,
    /// Ids of the events that track mappings, names, starts and ends; their records end like
    /// those of the first event.
    pub tracking_ids: Vec<u64>,
    /// The clock of all times: `monotonic` (CLOCK_MONOTONIC).
    pub clock: String,
    /// Kernel mode is not sampled.
    pub user_only: bool,
    /// Why these events were chosen, and limits that a report must state.
    pub notes: Vec<String>,
}

/// One sampled event, by the fields of `perf_event_attr`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampledEvent {
    /// perf's name, modifiers included.
    pub name: String,
    /// `type`.
    pub kind: u32,
    /// `config`.
    pub config: u64,
    /// `config1`.
    pub config1: u64,
    /// `config2`.
    pub config2: u64,
    /// `precise_ip`.
    pub precise: u8,
    /// Events between samples, or samples per second.
    pub period: u64,
    /// Whether `period` is a frequency.
    pub by_frequency: bool,
    /// Layout of its samples.
    #[serde(flatten)]
    pub format: SampleFormat,
    /// Ids in records.
    pub ids: Vec<u64>,
    /// The events that its samples read, if they do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<CountedEvent>,
}

/// An event counted in the group of a sampled one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CountedEvent {
    /// The table's name.
    pub name: String,
    /// Ids in READ fields.
    pub ids: Vec<u64>,
}

impl SampledEvent {
    fn to_event(&self) -> Event {
        Event {
            name: self.name.clone(),
            kind: self.kind,
            config: self.config,
            config1: self.config1,
            precise: self.precise,
            format: self.format,
            ids: self.ids.clone(),
            period: self.period,
            by_frequency: self.by_frequency,
            monotonic: true,
        }
    }
}

impl SampledEvents {
    /// The events that samples read, with their ids.
    pub fn counted(&self) -> Vec<(String, Vec<u64>)> {
        let all = self.events.iter().flat_map(|event| &event.counted);
        all.map(|event| (event.name.clone(), event.ids.clone())).collect()
    }

    /// The events for decoding records. Ids of tracking events are added to the first event: they have
    /// no samples, and their other records end like those of the first event.
    pub fn to_events(&self) -> Vec<Event> {
        let mut events: Vec<Event> = self.events.iter().map(SampledEvent::to_event).collect();
        if let Some(first) = events.first_mut() {
            first.ids.extend(&self.tracking_ids);
        }
        events
    }
}

/// Complete records of one ring buffer, in order of writing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordBatch {
    /// CPU of the ring buffer; `None`: synthesized from /proc at the start.
    pub cpu: Option<u32>,
    /// Number of records.
    pub records: u32,
    /// Number of samples among them.
    pub samples: u32,
    /// Headers and bodies, as the kernel wrote them.
    pub bytes: Vec<u8>,
}

impl RecordBatch {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(BATCH_HEADER + self.bytes.len());
        for number in [self.cpu.unwrap_or(NO_CPU), self.records, self.samples, 0] {
            payload.extend(number.to_le_bytes());
        }
        payload.extend(&self.bytes);
        payload
    }

    pub(super) fn decode(mut payload: Vec<u8>) -> Option<Self> {
        let header = payload.first_chunk::<BATCH_HEADER>()?;
        let (words, _) = header.as_chunks::<4>();
        let word = |at: usize| words.get(at).map_or(0, |w| u32::from_le_bytes(*w));
        let (cpu, records, samples) = (word(0), word(1), word(2));
        payload.drain(..BATCH_HEADER);
        Some(Self { cpu: (cpu != NO_CPU).then_some(cpu), records, samples, bytes: payload })
    }
}

/// The build-id of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BuildId {
    /// Its path as the process saw it.
    pub path: String,
    /// Hexadecimal.
    pub id: String,
}

impl BuildId {
    /// The build-id of `path`.
    pub fn new(path: &str, id: &[u8]) -> Self {
        Self { path: path.to_owned(), id: id.iter().map(|b| format!("{b:02x}")).collect() }
    }

    /// Path and bytes; `None` if the id is no hexadecimal number.
    pub fn bytes(&self) -> Option<(String, Vec<u8>)> {
        let digits = self.id.as_bytes();
        let (pairs, rest) = digits.as_chunks::<2>();
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        Some((self.path.clone(), bytes.filter(|b| rest.is_empty() && !b.is_empty())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_come_back_and_nonsense_does_not() {
        let id = BuildId::new("/bin/x", &[0, 0xab, 9]);
        assert_eq!(id.id, "00ab09");
        assert_eq!(id.bytes(), Some(("/bin/x".into(), vec![0, 0xab, 9])));
        for nonsense in ["", "0", "0g", "abc", "é"] {
            assert_eq!(BuildId { path: "x".into(), id: nonsense.into() }.bytes(), None);
        }
    }
}
