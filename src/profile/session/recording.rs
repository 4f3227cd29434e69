//! The samples of a session, as a [`Stream`] or a [`Recording`].

use super::chunk::{BuildId, Chunk, RecordBatch};
use super::read::Reader;
use crate::input::{Input, InputReader};
use crate::record::Scan;
use crate::recording::{About, Raw, Recording, Replay, Stream, Take};
use pmu::records::raw::headers;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use tma::error::{Error, Result};
use tma::text::several;

/// Whether the session `path` has samples. Reads no further than the first of them.
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
    open(path, true)?.whole()
}

/// As [`load_recording`], from bytes in memory; `name` names them in messages.
pub fn recording_from(bytes: &[u8], name: &str) -> Result<Recording> {
    stream(Input::of(bytes), name, true, false)?.whole()
}

/// Opens the session `path`, to read its samples one by one; without `chains`, call chains are left out.
pub fn open(path: &Path, chains: bool) -> Result<Stream> {
    open_as(path, chains, false)
}

/// As [`open`] without chains, of a session that is still written: it is no gap that it has no end yet.
pub fn open_growing(path: &Path) -> Result<Stream> {
    open_as(path, false, true)
}

fn open_as(path: &Path, chains: bool, is_growing: bool) -> Result<Stream> {
    let name = path.display().to_string();
    let input = Input::open(path).map_err(|e| tma::error::unreadable(path, &e))?;
    stream(input, &name, chains, is_growing)
}

fn stream(input: Input, name: &str, chains: bool, is_growing: bool) -> Result<Stream> {
    let file = Session { input, name: name.to_owned() };
    let mut reader = file.reader()?;
    let mut about = About { source: name.to_owned(), ..About::default() };
    let (mut scan, mut last) = (Scan::new(&[]), Last::default());
    let mut has_end = is_growing;
    let (mut counted, mut cut) = (0, 0);
    for chunk in reader.by_ref() {
        match chunk? {
            Chunk::Header(header) => {
                about.command = strings(&header["command"]);
                about.processor = text(&header["processor"]);
            }
            Chunk::Machine(machine) => {
                about.architecture = text(&machine["architecture"]);
                about.kernel = text(&machine["kernel"]);
                about.host = text(&machine["host"]);
                about.boot = text(&machine["boot"]);
                about.processor = text(&machine["processor"]).or(about.processor);
            }
            Chunk::SampledEvents(events) => {
                about.events = events.to_events();
                about.events.iter_mut().for_each(|event| event.format.leave_chains = !chains);
                about.counted = events.counted();
                about.notes.extend(events.notes);
                (scan, last, cut) = (Scan::new(&about.events), Last::default(), 0);
            }
            Chunk::Records(batch) => {
                cut += last.each(&batch, &mut |record, otherwise| scan.take(record, otherwise));
            }
            Chunk::BuildIds(ids) => {
                about.build_ids.extend(ids.iter().filter_map(BuildId::bytes));
            }
            Chunk::End(end) => {
                has_end = true;
                counted = end["sampling"]["lost"].as_u64().unwrap_or(0);
            }
            Chunk::Table(_) | Chunk::Counts(_) | Chunk::Software(_) => {}
        }
    }
    if about.events.is_empty() {
        return Err(Error::failed(format!("{name} has no samples"))
            .because("it was recorded without sampling")
            .hint("`tdtool record` samples if the kernel permits perf events"));
    }
    // A ring buffer that is full to the end gets no LOST record; the events count what they lose.
    about.lost = scan.lost.max(counted);
    about.samples.clone_from(&scan.samples);
    about.notes.extend(reader.end_notes(has_end));
    if scan.throttled > 0 {
        let n = scan.throttled;
        let times = several(n, "time");
        about
            .notes
            .push(format!("the kernel throttled sampling {times}: too many samples per second"));
    }
    if cut > 0 {
        let end = if cut == 1 { "ends" } else { "end" };
        about.notes.push(format!("{} {end} inside a record", several(cut, "batch")));
    }
    let (decoder, bounds) = scan.finish();
    Ok(Stream { about, records: Box::new(Raw { replay: file, decoder, bounds }) })
}

#[derive(Debug)]
struct Session {
    input: Input,
    name: String,
}

impl Session {
    fn reader(&self) -> Result<Reader<BufReader<InputReader>>> {
        Reader::new(BufReader::new(self.input.reader()), &self.name)
    }
}

impl Replay for Session {
    fn replay(&self, take: Take<'_>) -> Result<()> {
        let mut last = Last::default();
        let mut reader = self.reader()?;
        for chunk in reader.by_ref() {
            match chunk? {
                // The records of these events follow.
                Chunk::SampledEvents(_) => last = Last::default(),
                Chunk::Records(batch) => {
                    last.each(&batch, take);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Time of the last record of each ring buffer, by CPU: records without a time follow it.
#[derive(Default)]
struct Last(BTreeMap<Option<u32>, u64>);

impl Last {
    /// Calls `take` with each record of a batch; returns 1 if it ends inside a record.
    fn each(&mut self, batch: &RecordBatch, take: Take<'_>) -> u64 {
        let last = self.0.entry(batch.cpu).or_default();
        let mut cut = 0;
        for header in headers(&batch.bytes) {
            match header {
                Ok(header) => *last = take(&header, *last),
                Err(_) => cut += 1,
            }
        }
        cut
    }
}

fn text(value: &serde_json::Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn strings(value: &serde_json::Value) -> Option<Vec<String>> {
    let list: Vec<String> = value.as_array()?.iter().filter_map(text).collect();
    (!list.is_empty()).then_some(list)
}
