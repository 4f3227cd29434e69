//! Reads counts of a table's events, with what a report must state about them, from sessions and from `perf stat
//! record`. The event ids of a session refer to the table it was recorded with, whose text is in it; event names
//! map them to the table at hand.

use super::builder::{BlockKey, Builder, ParsedCount};
use super::formats::CountFormat;
use super::recording::{Count, Source};
use crate::perfdata::{self, StatCount, StatEvent};
use crate::session::Session;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tma::counts::{Counts, GroupCounts};
use tma::error::{Error, Result};
use tma::files;
use tma::quantity::Missing;
use tma::tables::{EventId, Table};

/// Counts of software events in one block.
#[derive(Debug, Clone, PartialEq)]
pub struct Software {
    /// As [`Counts::scope`].
    pub scope: Option<String>,
    /// As [`Counts::interval`].
    pub interval: Option<(Duration, Duration)>,
    /// Value by perf's event name; times in the unit that perf prints (task-clock in milliseconds,
    /// duration_time in nanoseconds).
    pub values: BTreeMap<String, std::result::Result<f64, Missing>>,
}

/// An event the table does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEvent {
    /// As written.
    pub name: String,
    /// Index into [`Recording::sources`](super::Recording::sources) of its first occurrence.
    pub source: usize,
    /// Its line, from 1.
    pub line: u32,
    /// Number of occurrences.
    pub occurrences: u64,
}

/// Counts of a table's events in a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// One for each block with counts, in file order.
    pub counts: Vec<Counts>,
    /// Software counts, for blocks that have some.
    pub software: Vec<Software>,
    /// Events that the table does not have, in order of appearance.
    pub unknown: Vec<UnknownEvent>,
    /// Number of rows of the other kind of core of a hybrid, which this table does not describe.
    pub other_core: u64,
    /// Facts about the import that a report must state.
    pub notes: Vec<String>,
}

/// Adds the session's counts for `table`.
///
/// # Errors
/// The session was recorded with other tables only, or its own table cannot be read.
pub fn add_session(session: &Session, table: &Table, imported: &mut Imported) -> Result<()> {
    let recorded = session.counts.iter().any(|c| c.table == table.name);
    if !recorded && !session.counts.is_empty() {
        let names: Vec<&str> = session.tables.iter().map(|t| t.name.as_str()).collect();
        return Err(Error::failed(format!(
            "the session was not recorded with {} but with {}",
            table.name,
            names.join(", ")
        ))
        .hint(format!("--uarch {}", names.first().unwrap_or(&"NAME"))));
    }
    let stored = session.tables.iter().find(|t| t.name == table.name);
    let Some(stored) = stored else {
        return match session.counts.is_empty() {
            true => Ok(()),
            false => Err(Error::failed("the session lacks the table it was recorded with")),
        };
    };
    let own = Table::parse(&stored.text, &format!("{} (in the session)", stored.name))?;
    let ids: Vec<Option<EventId>> = own.events.iter().map(|e| table.event(&e.name)).collect();
    for record in session.counts.iter().filter(|c| c.table == table.name) {
        imported.counts.push(translated(&record.counts, &ids)?);
    }
    for software in &session.software {
        let value = |(name, value): (&String, &Option<f64>)| {
            let value = value.ok_or_else(|| Missing::NotMeasured(name.clone().into()));
            (name.clone(), value)
        };
        imported.software.push(Software {
            scope: software.scope.clone(),
            interval: software.interval,
            values: software.values.iter().map(value).collect(),
        });
    }
    Ok(())
}

/// Translates event ids to those of the table at hand; events it lacks are left out.
fn translated(counts: &Counts, ids: &[Option<EventId>]) -> Result<Counts> {
    let id = |e: &EventId| {
        let known = ids.get(usize::from(*e));
        known.copied().ok_or_else(|| Error::failed(format!("the session's table has no event {e}")))
    };
    if counts.interval.is_some_and(|(begin, end)| begin > end) {
        return Err(Error::failed("an interval of the session ends before it begins"));
    }
    let mut out = counts.clone();
    for group in &mut out.groups {
        match group {
            GroupCounts::Live { events, readings, .. } => {
                let new: Vec<Option<EventId>> = events.iter().map(id).collect::<Result<_>>()?;
                let has_all = |r: &tma::counts::Reading| r.values.len() == new.len();
                if !readings.iter().all(has_all) {
                    return Err(Error::failed("a reading of the session lacks values"));
                }
                for reading in readings {
                    let kept = reading.values.iter().zip(&new).filter(|(_, e)| e.is_some());
                    reading.values = kept.map(|(v, _)| *v).collect();
                }
                *events = new.into_iter().flatten().collect();
            }
            GroupCounts::Imported { events, .. } => {
                let mut new = Vec::with_capacity(events.len());
                for (e, value) in events.iter() {
                    if let Some(e) = id(e)? {
                        new.push((e, value.clone()));
                    }
                }
                *events = new;
            }
            GroupCounts::Missing { events, .. } => {
                let new: Vec<Option<EventId>> = events.iter().map(id).collect::<Result<_>>()?;
                *events = new.into_iter().flatten().collect();
            }
        }
    }
    Ok(out)
}

/// The error for perf.data with samples.
pub fn with_samples(path: &Path) -> Error {
    let name = files::name(path);
    let error = Error::failed(format!("{name}: this is perf.data, with samples, not counts"))
        .because("several files are read together only if they hold counts");
    with_command(error, "tdtool report", path)
}

/// Reads the counts of a perf.data file.
///
/// # Errors
/// It cannot be read, or has no counts.
pub fn read_stat(path: &Path, builder: &mut Builder) -> Result<()> {
    let name = path.display();
    let found = perfdata::stat(path)?;
    let mut nothing = found.rounds.iter().flat_map(|round| &round.counts);
    if nothing.all(Option::is_none) {
        let error =
            Error::failed(format!("{}: `perf stat record` wrote no count", files::name(path)))
                .because(
                    found.damage.unwrap_or_else(|| "it ended before its first interval".into()),
                );
        return Err(with_command(error, "perf stat report -i", path));
    }
    builder.start_file(Source {
        path: path.to_owned(),
        format: CountFormat::PerfStatRecord,
        runs: 1,
    });
    if let Some(damage) = found.damage {
        builder.recording().notes.push(format!("{name} is damaged: {damage}"));
    }
    if found.is_of_parts {
        let note = format!(
            "{name}: counts are summed over CPUs and threads; `perf stat report` shows them apart"
        );
        builder.recording().notes.push(note);
    }
    if found.idle_counters > 0 {
        let (idle, all) = (found.idle_counters, found.counters);
        let note =
            format!("{name}: {idle} of {all} counters never ran; the sums lack their counts");
        builder.recording().notes.push(note);
    }
    for round in &found.rounds {
        let time = (!round.is_whole).then_some(round.end);
        let key = BlockKey { time, ..BlockKey::default() };
        for (event, count) in found.events.iter().zip(&round.counts) {
            builder.row(0, &key, &parsed(event, *count))?;
        }
        if round.is_whole && round.end > 0 {
            builder.row(0, &key, &duration(round.end))?;
        }
    }
    Ok(())
}

/// With a hint at a command that reads the file, if it can be read again.
fn with_command(error: Error, command: &str, path: &Path) -> Error {
    match tma::shell::file(path) {
        Some(file) => error.hint(format!("`{command} {file}` shows it")),
        None => error,
    }
}

fn parsed(event: &StatEvent, count: Option<StatCount>) -> ParsedCount<'_> {
    let value = match count.map(|count| count.value) {
        None => Count::NotSupported,
        Some(None) => Count::NotCounted,
        Some(Some(value)) => Count::Value(value),
    };
    let counted = count.filter(|count| count.value.is_some());
    ParsedCount {
        name: &event.name,
        count: value,
        running: counted.map(|count| count.running),
        run_time: counted.map(|count| count.run_time),
        unit: unit(event),
        ..ParsedCount::default()
    }
}

/// The unit of a count. perf scales its clocks when it prints them: the file has nanoseconds.
fn unit(event: &StatEvent) -> &str {
    let is_clock = ["task-clock", "cpu-clock"].iter().any(|clock| event.name.starts_with(clock));
    if is_clock && event.scale == 1.0 { "ns" } else { &event.unit }
}

/// Wall time, as perf prints it.
fn duration<'a>(nanoseconds: u64) -> ParsedCount<'a> {
    ParsedCount {
        name: "duration_time",
        count: Count::Value(nanoseconds as f64),
        ..ParsedCount::default()
    }
}
