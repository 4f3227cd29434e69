//! Counts of `perf stat record`, in the form of perf.data.

use super::builder::{BlockKey, Builder, ParsedCount};
use super::format::Format;
use super::recording::{Count, Source};
use crate::perfdata::{self, StatCount, StatEvent};
use std::path::Path;
use tma::error::{Error, Result};

/// Reads the counts of a perf.data file; one with samples is refused.
///
/// # Errors
/// It cannot be read, or has no counts.
pub fn read(path: &Path, builder: &mut Builder) -> Result<()> {
    let name = path.display();
    if !perfdata::holds_counts(path) {
        let error = Error::failed(format!("{name}: this is perf.data, with samples, not counts"))
            .because("several files are read together only if they hold counts");
        return Err(with_command(error, "tdtool report", path));
    }
    let found = perfdata::stat(path)?;
    let mut nothing = found.rounds.iter().flat_map(|round| &round.counts);
    if nothing.all(Option::is_none) {
        let error = Error::failed(format!("{name}: `perf stat record` wrote no count"))
            .because(found.damage.unwrap_or_else(|| "it ended before its first interval".into()));
        return Err(with_command(error, "perf stat report -i", path));
    }
    builder.start_file(Source { path: path.to_owned(), format: Format::PerfStatRecord, runs: 1 });
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
        group: None,
        unit: unit(event),
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
        running: None,
        run_time: None,
        group: None,
        unit: "",
    }
}
