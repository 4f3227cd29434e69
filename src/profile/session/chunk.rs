//! The layout of a session file: header, chunk headers, checksums; its chunks by kind, with those of counts and of
//! samples; its contents without the samples.

use crate::event::Event;
use pmu::records::format::SampleFormat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tma::counts::Counts;

/// First bytes of every session file. The line ends and the control-Z detect transfers in text
/// mode.
pub const MAGIC: [u8; 8] = *b"\x89TDS\r\n\x1a\n";
/// Version of the format this code writes.
pub const VERSION: u32 = 1;
/// Bytes of the file header: magic, version, checksum.
pub const FILE_HEADER: usize = 16;
/// Bytes of a chunk header: kind, length, checksum of the payload, checksum of the header.
pub const CHUNK_HEADER: usize = 20;
/// Maximum length of a payload.
pub const LONGEST_CHUNK: u64 = 1 << 30;

/// Maximum length of a payload of JSON.
pub const LONGEST_TEXT: u64 = 32 << 20;

/// Checksum of headers and payloads: CRC-32 (IEEE 802.3, as in PNG and zip).
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// One chunk.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// Machine, command line, options. A free-form JSON object; first chunk.
    Header(serde_json::Value),
    /// A table that counts refer to; before those counts.
    Table(StoredTable),
    /// Counts of one interval and scope.
    Counts(Box<StoredCounts>),
    /// Software counts of one interval and scope.
    Software(SoftwareCounts),
    /// How the recording ended. A free-form JSON object; last chunk.
    End(serde_json::Value),
    /// The sampled events; before the first records.
    SampledEvents(SampledEvents),
    /// Records of one ring buffer, or synthesized at the start.
    Records(RecordBatch),
    /// Build-ids of mapped files, at the end.
    BuildIds(Vec<BuildId>),
    /// Kernel, architecture, host. A free-form JSON object.
    Machine(serde_json::Value),
}

impl Chunk {
    /// Number of the kind in the file.
    pub fn kind(&self) -> u32 {
        match self {
            Chunk::Header(_) => 1,
            Chunk::Table(_) => 2,
            Chunk::Counts(_) => 3,
            Chunk::Software(_) => 4,
            Chunk::End(_) => 5,
            Chunk::SampledEvents(_) => 6,
            Chunk::Records(_) => 7,
            Chunk::BuildIds(_) => 8,
            Chunk::Machine(_) => 9,
        }
    }
}

/// The note of a recording with sampling but without samples.
pub const NO_SAMPLES: &str = "no sample was taken: the run was shorter than the sampling period, or \
     slept; hot code is unknown (try a longer run, or `tdtool record -F 4999`)";

/// The contents of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// [`Chunk::Header`](super::Chunk::Header).
    pub header: serde_json::Value,
    /// [`Chunk::Table`](super::Chunk::Table)s.
    pub tables: Vec<StoredTable>,
    /// [`Chunk::Counts`](super::Chunk::Counts), in order of recording.
    pub counts: Vec<StoredCounts>,
    /// [`Chunk::Software`](super::Chunk::Software), in order of recording.
    pub software: Vec<SoftwareCounts>,
    /// [`Chunk::End`](super::Chunk::End); `None` if the recording was cut off.
    pub end: Option<serde_json::Value>,
    /// [`Chunk::SampledEvents`](super::Chunk::SampledEvents), if samples were recorded;
    /// [`load_recording`](super::load_recording) reads them.
    pub sampled: Option<SampledEvents>,
    /// Number of samples.
    pub samples: u64,
    /// [`Chunk::Machine`](super::Chunk::Machine).
    pub machine: Option<serde_json::Value>,
    /// Limits that a report must state: the file ends early, chunks were skipped.
    pub notes: Vec<String>,
}

/// A table with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTable {
    /// Its name.
    pub name: String,
    /// Its TOML text.
    pub text: String,
}

/// Counts and the table their event ids belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredCounts {
    /// Name of the [`StoredTable`].
    pub table: String,
    /// The counts.
    pub counts: Counts,
}

/// Software counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SoftwareCounts {
    /// As [`Counts::scope`].
    pub scope: Option<String>,
    /// As [`Counts::interval`].
    pub interval: Option<(Duration, Duration)>,
    /// By perf's event name; `None` if it could not be counted.
    pub values: BTreeMap<String, Option<f64>>,
}

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
