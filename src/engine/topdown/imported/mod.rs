//! Recorded counts → report: the question, and the table that a recording is evaluated with. `evaluate` reads the
//! files and evaluates their counts.

mod evaluate;

use super::Ask;
pub use evaluate::imported;
pub(crate) use evaluate::of_counts;
use pmu::machine::describing;
use profile::counts::{self, Count, Recording, TableMatch};
use std::path::PathBuf;
use std::sync::Arc;
use tma::tables::{Library, Table};
use tma::{Cpu, Error, Result};

/// Counts to import and what to show of them.
#[derive(Debug, Clone, Default)]
pub struct ImportAsk {
    /// The files, in order.
    pub files: Vec<PathBuf>,
    /// Which nodes.
    pub ask: Ask,
    /// The table; `None`: the one that fits the events best.
    pub uarch: Option<String>,
    /// Reads which processor this is; it decides between tables that fit equally well.
    pub here: Option<fn() -> Cpu>,
    /// One report per interval instead of one for all of them.
    pub intervals: bool,
}

/// How many equally good tables are named one by one.
const NAMED: usize = 5;

/// The tables of a recording.
pub(super) struct Choice {
    /// One, or one per kind of core.
    pub tables: Vec<Arc<Table>>,
    /// The recording holds no hardware event: the table only reads the software counts.
    pub software_only: bool,
}

/// Why a recording cannot be used, in a few words.
pub(super) fn nothing_read(recording: &Recording) -> String {
    match recording.skipped.first() {
        Some(line) => {
            let place = recording.place(line.source, line.line);
            format!("{place}: {}: {}", line.why, line.text)
        }
        None if !recording.sessions.is_empty() => {
            "the recording ended before its first interval was over".into()
        }
        None => match recording.names.as_slice() {
            [] => "the input is empty".into(),
            names => format!("it counts {}", listed(names)),
        },
    }
}

/// Names, of many the first.
fn listed(names: &[String]) -> String {
    let mut shown: Vec<String> = names.iter().take(NAMED).cloned().collect();
    if names.len() > NAMED {
        shown.push(format!("{} more", names.len() - NAMED));
    }
    shown.join(", ")
}

/// The table of the other kind of core of a hybrid.
pub(super) fn sibling(table: &str, library: &Library) -> Option<String> {
    let other = table.strip_suffix("-e").map_or_else(|| format!("{table}-e"), str::to_owned);
    library.names().any(|name| name == other).then_some(other)
}

/// Why no event of the core was counted, if so, and the events' names belong to no one table.
fn uncounted(recording: &Recording, matches: &[TableMatch]) -> Option<String> {
    let rows = || recording.blocks.iter().flat_map(|b| &b.rows);
    let best = matches.first().map_or(0, |m| m.matched);
    let several = matches.iter().filter(|m| m.matched == best).count() != 1;
    if !several || rows().any(|row| matches!(row.count, Count::Value(_))) {
        return None;
    }
    let mut reasons = Vec::new();
    for (count, why) in
        [(Count::NotSupported, "<not supported>"), (Count::NotCounted, "<not counted>")]
    {
        let names = rows().filter(|row| row.count == count).map(|row| recording.name(row.name));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        if !names.is_empty() {
            reasons.push(format!("{why} {}", names.join(", ")));
        }
    }
    Some(format!("no event of the core has a count; the recording says {}", reasons.join("; ")))
}

/// The forced table, the session's tables, or the best match.
///
/// # Errors
/// A table that does not exist or does not parse; events that no table knows.
pub(super) fn choice(
    library: &Library,
    recording: &Recording,
    ask: &ImportAsk,
    notes: &mut Vec<String>,
) -> Result<Choice> {
    let some = |tables| Ok(Choice { tables, software_only: false });
    if let Some(name) = &ask.uarch {
        return some(vec![library.load(name)?]);
    }
    if let Some(session) = recording.sessions.first() {
        let parse =
            |t: &profile::session::StoredTable| Table::parse(&t.text, &t.name).map(Arc::new);
        return some(session.tables.iter().map(parse).collect::<Result<_>>()?);
    }
    let hardware = recording.blocks.iter().any(|b| !b.rows.is_empty());
    let software = recording.blocks.iter().any(|b| !b.software.is_empty());
    if let (false, true, Some(any)) = (hardware, software, library.names().next()) {
        return Ok(Choice { tables: vec![library.load(any)?], software_only: true });
    }
    let matches = counts::best_tables(recording, library);
    if let (Some(note), Some(any)) = (uncounted(recording, &matches), library.names().next()) {
        notes.push(note);
        return Ok(Choice { tables: vec![library.load(any)?], software_only: true });
    }
    let best = matches.first().filter(|m| m.matched > 0).ok_or_else(|| {
        Error::failed("no table knows these events")
            .because(nothing_read(recording))
            .hint("name the processor's table with --uarch; `tdtool tables list` lists them")
    })?;
    let is_equal = |m: &&TableMatch| (m.matched, m.nodes) == (best.matched, best.nodes);
    let equal: Vec<&str> = matches.iter().take_while(is_equal).map(|m| m.name.as_str()).collect();
    let here = match (equal.len(), ask.here) {
        (0 | 1, _) | (_, None) => Vec::new(),
        (_, Some(here)) => describing(&here(), library).unwrap_or_default(),
    };
    let is_here = |n: &&&str| here.iter().any(|(name, _)| name == **n);
    let chosen = equal.iter().find(is_here).copied().unwrap_or(equal[0]);
    let fit = format!("{} of {} events", best.matched, best.total);
    notes.push(match equal.len() {
        1 => format!("table {chosen} chosen by event names ({fit})"),
        n if n <= NAMED => format!(
            "table {chosen} chosen by event names ({fit}); {} match equally well; --uarch selects one",
            equal.iter().filter(|n| **n != chosen).copied().collect::<Vec<_>>().join(", ")
        ),
        n => format!(
            "table {chosen} chosen ({fit}); {} others match equally well; --uarch selects one",
            n - 1
        ),
    });
    some(vec![library.load(chosen)?])
}
