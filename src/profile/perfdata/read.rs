//! Reads a whole file.

use super::compressed::Expander;
use super::features::Features;
use super::header::Header;
use super::records::{Damage, Records, metadata, user};
use crate::event::Event;
use crate::record::Collector;
use crate::recording::Recording;
use pmu::records::kind::USER_TYPE_START;
use pmu::records::raw::Header as RawRecord;
use std::path::Path;
use tma::{Error, Result};

/// Whether these first bytes of a file are those of perf.data, so that [`read()`] can say more.
pub fn recognise(start: &[u8]) -> bool {
    [b"PERFILE2", b"2ELIFREP", b"PERFFILE"].iter().any(|magic| start.starts_with(*magic))
}

/// Reads a perf.data file.
///
/// # Errors
/// It cannot be read, is no perf.data, or is damaged before its first sample.
pub fn read(path: &Path) -> Result<Recording> {
    read_with(path, true)
}

/// As [`read()`]; without `chains`, call chains are left out.
///
/// # Errors
/// As [`read()`].
pub fn read_with(path: &Path, chains: bool) -> Result<Recording> {
    let source = path.display().to_string();
    let failed = || Error::failed(format!("cannot read {source}"));
    if path.is_dir() {
        return Err(failed()
            .because("it is a folder: recordings of `perf record --threads` are not supported")
            .hint("record without --threads"));
    }
    let bytes = std::fs::read(path).map_err(|e| failed().because(e))?;
    parse_with(&bytes, &source, chains)
}

/// Reads a perf.data file that is already in memory; `source` names it in messages.
///
/// # Errors
/// As [`read()`].
pub fn parse(bytes: &[u8], source: &str) -> Result<Recording> {
    parse_with(bytes, source, true)
}

fn parse_with(file: &[u8], source: &str, chains: bool) -> Result<Recording> {
    let failed = |why: String| {
        Error::failed(format!("cannot read {source} as a perf.data file"))
            .because(why)
            .hint("see whether `perf report --header-only` reads it, or record again")
    };
    let mut header = Header::read(file).map_err(failed)?;
    let records = Records::new(file, header.records.clone());
    let among_records = metadata(records.clone(), &mut header.features);
    let Header { mut events, features, mut notes, .. } = header;
    events.extend(among_records);
    if events.is_empty() {
        return Err(failed("it has no description of the recorded events".into()));
    }
    events.iter_mut().for_each(|event| event.format.leave_chains = !chains);
    let (mut contents, end) = (Contents::new(&events), records.end());
    if let Err(damage) = contents.read(records) {
        if contents.collector.samples == 0 {
            return Err(failed(format!("it is damaged before the first sample: {damage}")));
        }
        let unread = end - damage.at;
        notes.push(format!(
            "the file is damaged: {damage}; the {unread} bytes from there on are not read"
        ));
    }
    notes.extend(contents.collector.notes());
    Ok(assemble(source, events, features, contents.collector, notes))
}

fn assemble(
    source: &str,
    events: Vec<Event>,
    features: Features,
    collector: Collector,
    notes: Vec<String>,
) -> Recording {
    Recording {
        source: source.to_owned(),
        events,
        lost: collector.lost,
        records: collector.into_records(),
        build_ids: features.build_ids,
        architecture: features.architecture,
        kernel: features.kernel,
        boot: None,
        processor: features.processor,
        host: features.host,
        command: features.command,
        notes,
    }
}

/// The kernel's records.
struct Contents {
    collector: Collector,
    rounds: Rounds,
}

impl Contents {
    fn new(events: &[Event]) -> Self {
        Self { collector: Collector::new(events), rounds: Rounds::default() }
    }

    /// Reads all records up to the first damage.
    fn read(&mut self, records: Records<'_>) -> std::result::Result<(), Damage> {
        let mut expander = Expander::new();
        let mut last = 0;
        let outcome = { records }.try_for_each(|next| {
            let (at, record) = next?;
            last = at;
            self.take(&record, &mut expander).map_err(|why| Damage { at, why })
        });
        let rest = expander.finish(&mut |header: &RawRecord<'_>| self.take_kernel_record(header));
        outcome.and(rest.map_err(|why| Damage { at: last, why }))
    }

    fn take(
        &mut self,
        record: &RawRecord<'_>,
        expander: &mut Expander,
    ) -> std::result::Result<(), String> {
        let sized = record.kind == user::COMPRESSED2;
        match record.kind {
            user::COMPRESSED | user::COMPRESSED2 => {
                let mut take = |header: &RawRecord<'_>| self.take_kernel_record(header);
                return expander.add(record.body, sized, &mut take);
            }
            user::FINISHED_ROUND => self.rounds.finish(),
            kind if kind < USER_TYPE_START => self.take_kernel_record(record),
            _ => {}
        }
        Ok(())
    }

    /// A record of the kernel.
    fn take_kernel_record(&mut self, record: &RawRecord<'_>) {
        let time = self.collector.take(record, self.rounds.before_last);
        self.rounds.now = self.rounds.now.max(time);
    }
}

/// perf reads all ring buffers in rounds: no record is older than any record of the last round but one
/// (perf's util/ordered-events.c and the comment on `process_finished_round`). So a record without a
/// time is placed after the records of that round, and before later ones.
#[derive(Default)]
struct Rounds {
    /// Latest time up to the last round but one, up to the last, and up to now.
    before_last: u64,
    last: u64,
    now: u64,
}

impl Rounds {
    fn finish(&mut self) {
        (self.before_last, self.last) = (self.last, self.now);
    }
}
