//! Opens a file and reads its records, as often as needed.

use super::compressed::Expander;
use super::header::Header;
use super::records::{Damage, Records, events, take_feature, user};
use crate::input::Input;
use crate::record::Scan;
use crate::recording::{About, Raw, Recording, Replay, Stream, Take};
use pmu::records::kind::USER_TYPE_START;
use pmu::records::raw::Header as RawRecord;
use std::ops::Range;
use std::path::Path;
use tma::{Error, Result};

/// Whether these first bytes of a file are those of perf.data, so that [`open`] can say more.
pub fn recognise(start: &[u8]) -> bool {
    [b"PERFILE2", b"2ELIFREP", b"PERFFILE"].iter().any(|magic| start.starts_with(*magic))
}

/// Reads a whole perf.data file.
///
/// # Errors
/// It cannot be read, is no perf.data, or is damaged before its first sample.
pub fn read(path: &Path) -> Result<Recording> {
    open(path, true)?.whole()
}

/// Opens a perf.data file; without `chains`, call chains are left out.
///
/// # Errors
/// As [`read()`].
pub fn open(path: &Path, chains: bool) -> Result<Stream> {
    let source = path.display().to_string();
    let failed = || Error::failed(format!("cannot read {source}"));
    if path.is_dir() {
        return Err(failed()
            .because("it is a folder: recordings of `perf record --threads` are not supported")
            .hint("record without --threads"));
    }
    let input = Input::open(path).map_err(|e| failed().because(e))?;
    stream(input, &source, chains)
}

/// Reads a perf.data file that is already in memory; `source` names it in messages.
///
/// # Errors
/// As [`read()`].
pub fn parse(bytes: &[u8], source: &str) -> Result<Recording> {
    stream(Input::of(bytes), source, true)?.whole()
}

fn stream(input: Input, source: &str, chains: bool) -> Result<Stream> {
    let failed = |why: String| {
        Error::failed(format!("cannot read {source} as a perf.data file"))
            .because(why)
            .hint("see whether `perf report --header-only` reads it, or record again")
    };
    let header = Header::read(&input).map_err(failed)?;
    let range = header.records.clone();
    let Header { mut events, mut features, mut notes, .. } = header;
    let is_stream = events.is_empty();
    if is_stream {
        events = self::events(Records::new(&input, range.clone()), &mut features);
    }
    if events.is_empty() {
        return Err(failed("it has no description of the recorded events".into()));
    }
    events.iter_mut().for_each(|event| event.format.leave_chains = !chains);
    let mut scan = Scan::new(&events);
    let mut file = File { input, range, damage: None, source: source.to_owned() };
    if let Err(damage) =
        file.walk(&mut |record, otherwise| scan.take(record, otherwise), &mut |record| {
            if !is_stream {
                take_feature(record, &mut features);
            }
        })
    {
        if scan.samples == 0 {
            return Err(failed(format!("it is damaged before the first sample: {damage}")));
        }
        let unread = file.range.end - damage.at;
        notes.push(format!(
            "the file is damaged: {damage}; the {unread} bytes from there on are not read"
        ));
        file.damage = Some(damage);
    }
    let about = About {
        source: source.to_owned(),
        events,
        counted: Vec::new(),
        build_ids: features.build_ids,
        architecture: features.architecture,
        kernel: features.kernel,
        boot: None,
        processor: features.processor,
        cpuid: features.cpuid,
        host: features.host,
        command: features.command,
        lost: scan.lost,
        notes,
    };
    let (decoder, bounds) = scan.finish();
    Ok(Stream { about, records: Box::new(Raw { replay: file, decoder, bounds }) })
}

/// The records of a file.
#[derive(Debug)]
struct File {
    input: Input,
    range: Range<u64>,
    /// Where it ends early, as found when it was opened.
    damage: Option<Damage>,
    source: String,
}

impl Replay for File {
    fn replay(&self, take: Take<'_>) -> Result<()> {
        match self.walk(take, &mut |_| {}).err() {
            found if found == self.damage => Ok(()),
            found => Err(Error::failed(format!("cannot read {} again", self.source))
                .because(found.map_or("it has changed".to_owned(), |damage| damage.to_string()))),
        }
    }
}

impl File {
    /// Reads all records up to the first damage; `other` takes those of perf itself.
    fn walk(
        &self,
        take: Take<'_>,
        other: &mut dyn FnMut(&RawRecord<'_>),
    ) -> std::result::Result<(), Damage> {
        let mut walk = Walk { rounds: Rounds::default(), take, other };
        let mut records = Records::new(&self.input, self.range.clone());
        let mut expander = Expander::new();
        let mut last = 0;
        let mut outcome = Ok(());
        while let Some(next) = records.next() {
            outcome = next.and_then(|(at, record)| {
                last = at;
                walk.take(&record, &mut expander).map_err(|why| Damage { at, why })
            });
            if outcome.is_err() {
                break;
            }
        }
        let rest = expander.finish(&mut |record: &RawRecord<'_>| walk.kernel_record(record));
        outcome.and(rest.map_err(|why| Damage { at: last, why }))
    }
}

/// A walk through the records.
struct Walk<'a> {
    rounds: Rounds,
    take: Take<'a>,
    other: &'a mut dyn FnMut(&RawRecord<'_>),
}

impl Walk<'_> {
    fn take(
        &mut self,
        record: &RawRecord<'_>,
        expander: &mut Expander,
    ) -> std::result::Result<(), String> {
        let sized = record.kind == user::COMPRESSED2;
        match record.kind {
            user::COMPRESSED | user::COMPRESSED2 => {
                let mut take = |record: &RawRecord<'_>| self.kernel_record(record);
                return expander.add(record.body, sized, &mut take);
            }
            user::FINISHED_ROUND => self.rounds.finish(),
            kind if kind < USER_TYPE_START => self.kernel_record(record),
            _ => (self.other)(record),
        }
        Ok(())
    }

    /// A record of the kernel.
    fn kernel_record(&mut self, record: &RawRecord<'_>) {
        let time = (self.take)(record, self.rounds.before_last);
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
