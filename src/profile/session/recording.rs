//! The samples of a session, as a [`Recording`].

use super::chunk::Chunk;
use super::read::Reader;
use super::samples::{BuildId, RecordBatch};
use crate::record::Collector;
use crate::recording::Recording;
use pmu::records::raw::headers;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use tma::error::{Error, Result};

/// Whether the session `path` has samples. Reads no further than the first of them.
///
/// # Errors
/// As [`Reader`].
pub fn has_samples(path: &Path) -> Result<bool> {
    let mut reader = Reader::open(path)?;
    while let Some((kind, payload)) = reader.next_raw()? {
        if kind == 7 && RecordBatch::decode(payload).is_some_and(|b| b.samples > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads the samples of the session `path` with mappings and thread names.
///
/// # Errors
/// As [`Reader`]; the session has no samples.
pub fn load_recording(path: &Path) -> Result<Recording> {
    recording(Reader::open(path)?, &path.display().to_string())
}

/// As [`load_recording`], from any input; `name` names it in messages.
///
/// # Errors
/// As [`load_recording`].
pub fn recording_from(input: impl Read, name: &str) -> Result<Recording> {
    recording(Reader::new(input, name)?, name)
}

fn recording<R: Read>(mut reader: Reader<R>, name: &str) -> Result<Recording> {
    let mut batches = Batches::new(Collector::new(&[]));
    let mut recording = Recording { source: name.to_owned(), ..Recording::default() };
    let mut has_end = false;
    let mut counted = 0;
    for chunk in reader.by_ref() {
        match chunk? {
            Chunk::Header(header) => {
                recording.command = strings(&header["command"]);
                recording.processor = text(&header["processor"]);
            }
            Chunk::Machine(machine) => {
                recording.architecture = text(&machine["architecture"]);
                recording.kernel = text(&machine["kernel"]);
                recording.host = text(&machine["host"]);
                recording.boot = text(&machine["boot"]);
                recording.processor = text(&machine["processor"]).or(recording.processor);
            }
            Chunk::SampledEvents(events) => {
                recording.events = events.to_events();
                batches = Batches::new(Collector::new(&recording.events));
                recording.notes.extend(events.notes);
            }
            Chunk::Records(batch) => batches.take(&batch),
            Chunk::BuildIds(ids) => {
                recording.build_ids.extend(ids.iter().filter_map(BuildId::bytes));
            }
            Chunk::End(end) => {
                has_end = true;
                counted = end["sampling"]["lost"].as_u64().unwrap_or(0);
            }
            Chunk::Table(_) | Chunk::Counts(_) | Chunk::Software(_) => {}
        }
    }
    if recording.events.is_empty() {
        return Err(Error::failed(format!("{name} has no samples"))
            .because("it was recorded without sampling")
            .hint("tdtool record samples if the kernel permits perf events"));
    }
    // A ring buffer that is full to the end gets no LOST record; the events count what they lose.
    recording.lost = batches.collector.lost.max(counted);
    recording.notes.extend(reader.end_notes(has_end));
    recording.notes.extend(batches.collector.notes());
    if batches.collector.throttled > 0 {
        let n = batches.collector.throttled;
        recording
            .notes
            .push(format!("the kernel throttled sampling {n} times: too many samples per second"));
    }
    if batches.cut > 0 {
        recording.notes.push(format!("{} batches end inside a record", batches.cut));
    }
    recording.records = batches.collector.into_records();
    Ok(recording)
}

/// The records of a session, batch by batch.
struct Batches {
    collector: Collector,
    /// Time of the last record of each ring buffer, by CPU: records without a time follow it.
    last: BTreeMap<Option<u32>, u64>,
    /// Batches that end inside a record.
    cut: u64,
}

impl Batches {
    fn new(collector: Collector) -> Self {
        Self { collector, last: BTreeMap::new(), cut: 0 }
    }

    fn take(&mut self, batch: &RecordBatch) {
        let last = self.last.entry(batch.cpu).or_default();
        for header in headers(&batch.bytes) {
            match header {
                Ok(header) => *last = self.collector.take(&header, *last),
                Err(_) => self.cut += 1,
            }
        }
    }
}

fn text(value: &serde_json::Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn strings(value: &serde_json::Value) -> Option<Vec<String>> {
    let list: Vec<String> = value.as_array()?.iter().filter_map(text).collect();
    (!list.is_empty()).then_some(list)
}
