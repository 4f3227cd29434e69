//! The records of one or several files, read alternately: `perf record --threads` writes a folder with a file for each
//! thread that wrote.

use super::broken::Broken;
use super::compressed::Expander;
use super::records::{Damage, Records, user};
use crate::input::Input;
use crate::recording::{Replay, Take};
use pmu::records::kind::USER_TYPE_START;
use pmu::records::raw::Header as RawRecord;
use std::ops::Range;
use tma::{Error, Result};

/// Bytes read of a file before switching to another.
const CHUNK: u64 = 64 << 10;

/// Where records lie.
#[derive(Debug)]
pub(super) struct Part {
    pub input: Input,
    pub range: Range<u64>,
    /// Name in messages.
    pub name: String,
}

/// The records of a recording.
#[derive(Debug)]
pub(super) struct Files {
    pub parts: Vec<Part>,
    /// Where each ends early, as found when it was opened.
    pub damage: Vec<Option<Damage>>,
    pub source: String,
}

impl Replay for Files {
    fn replay(&self, take: Take<'_>) -> Result<()> {
        let found = self.walk(take, &mut |_| {});
        if found == self.damage {
            return Ok(());
        }
        let why = found.into_iter().flatten().next();
        Err(Error::failed(format!("cannot read {} again", self.source))
            .because(why.map_or("it has changed".to_owned(), |damage| damage.to_string())))
    }
}

impl Files {
    /// Reads all records up to the first damage of each file; `other` takes those of perf itself. The file least far in
    /// time is read next, so that few records wait for those of other files.
    pub fn walk(
        &self,
        take: Take<'_>,
        other: &mut dyn FnMut(&RawRecord<'_>),
    ) -> Vec<Option<Damage>> {
        let mut walks: Vec<Walk<'_>> = self.parts.iter().map(Walk::new).collect();
        loop {
            let going = walks.iter_mut().filter(|walk| !walk.has_ended);
            let Some(next) = going.min_by_key(|walk| walk.rounds.now) else { break };
            next.read_chunk(take, other);
        }
        walks.into_iter().map(|walk| walk.outcome.err()).collect()
    }
}

/// A walk through the records of a file.
struct Walk<'a> {
    records: Records<'a>,
    expander: Expander,
    rounds: Rounds,
    /// Offset of the last record.
    last: u64,
    outcome: std::result::Result<(), Damage>,
    has_ended: bool,
}

impl<'a> Walk<'a> {
    fn new(part: &'a Part) -> Self {
        Self {
            records: Records::new(&part.input, part.range.clone()),
            expander: Expander::new(),
            rounds: Rounds::default(),
            last: 0,
            outcome: Ok(()),
            has_ended: false,
        }
    }

    /// Reads [`CHUNK`] bytes, or to the end.
    fn read_chunk(&mut self, take: Take<'_>, other: &mut dyn FnMut(&RawRecord<'_>)) {
        let mut first = None;
        while let Some(next) = self.records.next() {
            let (rounds, expander) = (&mut self.rounds, &mut self.expander);
            self.outcome = next.and_then(|(at, record)| {
                self.last = at;
                let taken = rounds.take(&record, expander, take, other);
                taken.map_err(|why| Damage { at, why })
            });
            if self.outcome.is_err() {
                break;
            }
            if self.last - *first.get_or_insert(self.last) >= CHUNK {
                return;
            }
        }
        self.has_ended = true;
        let rest = self.expander.finish(&mut |record| self.rounds.of_kernel(record, take));
        let rest = rest.map_err(|why| Damage { at: self.last, why });
        self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(rest);
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
    fn take(
        &mut self,
        record: &RawRecord<'_>,
        expander: &mut Expander,
        take: Take<'_>,
        other: &mut dyn FnMut(&RawRecord<'_>),
    ) -> std::result::Result<(), Broken> {
        let sized = record.kind == user::COMPRESSED2;
        match record.kind {
            user::COMPRESSED | user::COMPRESSED2 => {
                let mut each = |record: &RawRecord<'_>| self.of_kernel(record, take);
                return expander.add(record.body, sized, &mut each);
            }
            user::FINISHED_ROUND => self.finish(),
            kind if kind < USER_TYPE_START => self.of_kernel(record, take),
            _ => other(record),
        }
        Ok(())
    }

    /// A record of the kernel.
    fn of_kernel(&mut self, record: &RawRecord<'_>, take: Take<'_>) {
        let time = take(record, self.before_last);
        self.now = self.now.max(time);
    }

    fn finish(&mut self) {
        (self.before_last, self.last) = (self.last, self.now);
    }
}
