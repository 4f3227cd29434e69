//! perf.data files: linux-perf-data as the container, the records and samples by our own decoder.
//!
//! | file | concern |
//! |---|---|
//! | `header` | where everything stands |
//! | `attribute` | events, from `perf_event_attr` |
//! | `features` | what a file says about itself |
//! | `stream` | how far whole records reach; what perf put among them |
//! | `expansion` | how far compressed records expand, before they do |
//! | `container` | linux-perf-data: decompression, order of time |
//!
//! What a damaged file claims is checked against what is there before anything relies on it.

mod attribute;
mod container;
mod expansion;
mod features;
mod header;
mod stream;
use super::record::{Decoder, Record};
use super::recording::{Event, Recording};
use super::sample::Malformed;
use features::Features;
use header::Header;
use std::path::Path;
use stream::Stream;
use tma::{Error, Result};

/// Whether these first bytes of a file are those of perf.data, so that [`read`] can say more.
pub fn recognise(start: &[u8]) -> bool {
    [b"PERFILE2", b"2ELIFREP", b"PERFFILE"].iter().any(|magic| start.starts_with(*magic))
}

/// Reads a perf.data file, in file or pipe mode.
///
/// # Errors
/// It cannot be read, is no perf.data, or is damaged before its first sample.
pub fn read(path: &Path) -> Result<Recording> {
    read_with(path, true)
}

/// As [`read`]; without `chains`, call chains are left out.
///
/// # Errors
/// As [`read`].
pub fn read_with(path: &Path, chains: bool) -> Result<Recording> {
    let source = path.display().to_string();
    let failed = || Error::failed(format!("cannot read {source}"));
    if path.is_dir() {
        return Err(failed()
            .because("it is a folder: recordings of `perf record --threads` are not read")
            .hint("record without --threads"));
    }
    let bytes = std::fs::read(path).map_err(|e| failed().because(e))?;
    parse_with(&bytes, &source, chains)
}

/// Reads a whole perf.data file that is already in memory; `source` names it.
///
/// # Errors
/// As [`read`].
pub fn parse(bytes: &[u8], source: &str) -> Result<Recording> {
    parse_with(bytes, source, true)
}

fn parse_with(bytes: &[u8], source: &str, chains: bool) -> Result<Recording> {
    let failed = |why: String| {
        Error::failed(format!("cannot read {source} as a perf.data file"))
            .because(why)
            .hint("see whether `perf report --header-only` reads it, or record again")
    };
    let mut header = Header::read(bytes).map_err(failed)?;
    let stream = Stream::read(bytes, header.records.clone(), &mut header.features);
    let Header { mut events, features, mut notes, .. } = header;
    events.extend(stream.events);
    if events.is_empty() {
        return Err(failed("it does not say which events were recorded".into()));
    }
    events.iter_mut().for_each(|event| event.format.leave_chains = !chains);
    let mut reading = Reading::new(&events);
    if let Err(why) = container::records(&events, &stream.parts, |k, m, b| reading.take(k, m, b)) {
        if reading.samples == 0 {
            return Err(failed(format!("it is damaged before the first sample: {why}")));
        }
        notes.push(format!("the file is damaged: {why}; what follows is not read"));
    }
    if let Some(damage) = stream.damage {
        if reading.samples == 0 {
            return Err(failed(format!("it is damaged before the first sample: {damage}")));
        }
        let unread = stream.unread;
        notes.push(format!(
            "the file is damaged: {damage}; the {unread} bytes from there on are not read"
        ));
    }
    reading.tell(&mut notes);
    Ok(assemble(source, events, features, reading, notes))
}

fn assemble(
    source: &str,
    events: Vec<Event>,
    features: Features,
    reading: Reading,
    notes: Vec<String>,
) -> Recording {
    Recording {
        source: source.to_owned(),
        events,
        records: reading.records,
        build_ids: features.build_ids,
        architecture: features.architecture,
        kernel: features.kernel,
        boot: None,
        processor: features.processor,
        host: features.host,
        command: features.command,
        lost: reading.lost,
        notes,
    }
}

/// The records as they come.
struct Reading {
    decoder: Decoder,
    records: Vec<Record>,
    lost: u64,
    /// How many could not be decoded, and why the first could not.
    malformed: Option<(u64, Malformed)>,
    /// Samples with fields that are not known.
    unread: u64,
    samples: u64,
}

impl Reading {
    fn new(events: &[Event]) -> Self {
        Self {
            decoder: Decoder::new(events),
            records: Vec::new(),
            lost: 0,
            malformed: None,
            unread: 0,
            samples: 0,
        }
    }

    fn take(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let record = match self.decoder.decode(kind, misc, body) {
            Ok(record) => record,
            Err(error) => {
                self.malformed.get_or_insert((0, error)).0 += 1;
                return;
            }
        };
        match &record {
            Record::Lost { count } => self.lost = self.lost.saturating_add(*count),
            Record::Sample { sample, .. } => {
                self.samples += 1;
                self.unread += u64::from(sample.unread > 0);
            }
            _ => {}
        }
        self.records.push(record);
    }

    fn tell(&self, notes: &mut Vec<String>) {
        if !self.decoder.tells_apart() {
            notes.push(
                "the samples do not tell which of several events they are of: they are given as \
                 of the first"
                    .into(),
            );
        }
        if let Some((count, first)) = &self.malformed {
            notes.push(format!("{count} records could not be decoded; of the first: {first}"));
        }
        if self.unread > 0 {
            let (unread, samples) = (self.unread, self.samples);
            notes.push(format!(
                "{unread} of {samples} samples have fields that this version does not know; they \
                 are left out"
            ));
        }
    }
}
