//! The samples of a session, as [`Recording`].

use super::{Chunk, Reader, RecordBatch};
use crate::record::{Decoder, Record};
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

/// Reads the samples of the session `path`, with everything needed to understand them.
///
/// # Errors
/// As [`Reader`]; a session without samples.
pub fn load_recording(path: &Path) -> Result<Recording> {
    recording(Reader::open(path)?, &path.display().to_string())
}

/// As [`load_recording`], from anything that can be read; `name` names it in errors.
///
/// # Errors
/// As [`load_recording`].
pub fn recording_from(input: impl Read, name: &str) -> Result<Recording> {
    recording(Reader::new(input, name)?, name)
}

fn recording<R: Read>(mut reader: Reader<R>, name: &str) -> Result<Recording> {
    let mut taken = Taken::default();
    let mut recording = Recording { source: name.to_owned(), ..Recording::default() };
    let mut decoder = Decoder::new(&[]);
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
                decoder = Decoder::new(&recording.events);
                recording.notes.extend(events.notes);
            }
            Chunk::Records(batch) => taken.batch(&batch, &decoder),
            Chunk::BuildIds(ids) => {
                recording.build_ids.extend(ids.iter().filter_map(super::BuildId::bytes));
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
            .hint("tdtool record samples wherever the kernel opens perf events"));
    }
    // A ring that stayed full to the end has no record that tells so; the events have counted.
    recording.lost = taken.lost.max(counted);
    recording.notes.extend(reader.end_notes(has_end));
    recording.notes.extend(taken.notes());
    recording.records = taken.in_order();
    Ok(recording)
}

/// Records as they come in, ring by ring.
#[derive(Default)]
struct Taken {
    /// Time and record. Those without a time have that of the one before in their ring.
    records: Vec<(u64, Record)>,
    last: BTreeMap<Option<u32>, u64>,
    lost: u64,
    throttled: u64,
    malformed: BTreeMap<String, u64>,
    cut: u64,
}

impl Taken {
    fn batch(&mut self, batch: &RecordBatch, decoder: &Decoder) {
        let mut last = self.last.get(&batch.cpu).copied().unwrap_or(0);
        for header in headers(&batch.bytes) {
            let Ok(header) = header else {
                self.cut += 1;
                break;
            };
            match decoder.decode(header.kind, header.misc, header.body) {
                Ok(record) => {
                    last = time(&record).unwrap_or(last);
                    match &record {
                        Record::Lost { count } => self.lost = self.lost.saturating_add(*count),
                        Record::Throttled => self.throttled += 1,
                        _ => {}
                    }
                    self.records.push((last, record));
                }
                Err(why) => {
                    let why = format!("{}: {}", why.field, why.why);
                    // A damaged file must not fill the memory with reasons.
                    if self.malformed.len() < 100 || self.malformed.contains_key(&why) {
                        *self.malformed.entry(why).or_default() += 1;
                    }
                }
            }
        }
        self.last.insert(batch.cpu, last);
    }

    /// By time; records of the same time in the order they came.
    fn in_order(mut self) -> Vec<Record> {
        self.records.sort_by_key(|(time, _)| *time);
        self.records.into_iter().map(|(_, record)| record).collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.throttled > 0 {
            let n = self.throttled;
            notes.push(format!("the kernel held samples back {n} times: too many a second"));
        }
        let malformed = self.malformed.iter();
        notes.extend(malformed.map(|(why, n)| format!("{n} records not understood: {why}")));
        if self.cut > 0 {
            notes.push(format!("{} rings have a record that is not whole", self.cut));
        }
        notes
    }
}

fn time(record: &Record) -> Option<u64> {
    match record {
        Record::Map { time, .. }
        | Record::Name { time, .. }
        | Record::Fork { time, .. }
        | Record::Exit { time, .. } => *time,
        Record::Sample { sample, .. } => sample.time,
        Record::Lost { .. } | Record::Throttled | Record::Other(_) => None,
    }
}

fn text(value: &serde_json::Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn strings(value: &serde_json::Value) -> Option<Vec<String>> {
    let list: Vec<String> = value.as_array()?.iter().filter_map(text).collect();
    (!list.is_empty()).then_some(list)
}
