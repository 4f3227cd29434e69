//! Recorded counts → report.

use super::advise::advise;
use super::choose::Ask;
use crate::collect::recorded::{self, Imported, Over, Recording};
use crate::counts::Counts;
use crate::error::{Error, Result};
use crate::quantity::Missing;
use crate::report::document::Unread;
use crate::report::{self, Report, Source};
use crate::tables::{Library, Table};
use crate::topdown::Evaluator;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to import and what to show of it.
#[derive(Debug, Clone, Default)]
pub struct ImportAsk {
    /// The files, in order.
    pub files: Vec<PathBuf>,
    /// Which nodes.
    pub ask: Ask,
    /// The table; `None`: the one that fits the events best.
    pub uarch: Option<String>,
    /// Tables of this machine, which decide between tables that fit equally well.
    pub detected: Vec<String>,
    /// One report per interval instead of one for all of them.
    pub intervals: bool,
}

/// Reads the files and evaluates them: one report, or one per interval.
///
/// # Errors
/// A file that cannot be read or understood; counts that no table, or not the forced one, fits.
pub fn imported(library: &Library, ask: &ImportAsk) -> Result<Vec<Report>> {
    let recording = recorded::read(&ask.files)?;
    let mut notes = recording.notes.clone();
    let table = table(library, &recording, ask, &mut notes)?;
    let options =
        recorded::Options { library: Some(library), forced: ask.uarch.is_some() };
    let imported = recorded::counts(&recording, &table, options)?;
    if imported.counts.is_empty() && imported.software.is_empty() {
        return Err(Error::failed("no counts were recognised")
            .because(nothing_read(&recording))
            .hint("perf stat -x, or -j, toplev --valcsv, event,value CSV and tdtool sessions are read"));
    }
    let mut base = frame(&recording, &table, ask, &imported);
    base.notes = notes;
    base.notes.extend(imported.findings.notes.iter().cloned());
    reports(base, &table, ask, &imported)
}

fn nothing_read(recording: &Recording) -> String {
    match recording.skipped.first() {
        Some(line) => {
            let place = recording.place(line.source, line.line);
            format!("{place}: {}: {}", line.why, line.text)
        }
        None => "the input is empty".into(),
    }
}

/// The forced table, the session's, or the best match.
fn table(
    library: &Library,
    recording: &Recording,
    ask: &ImportAsk,
    notes: &mut Vec<String>,
) -> Result<Table> {
    if let Some(name) = &ask.uarch {
        return library.load(name);
    }
    if let Some(session) = recording.sessions.first() {
        return session.table(library);
    }
    let matches = recorded::best_tables(recording, library);
    let best = matches.first().filter(|m| m.matched > 0).ok_or_else(|| {
        Error::failed("no table knows these events")
            .because(nothing_read(recording))
            .hint("name the processor's table with --uarch; `tdtool tables list` has them all")
    })?;
    let equal: Vec<&str> = matches
        .iter()
        .take_while(|m| m.matched == best.matched)
        .map(|m| m.name.as_str())
        .collect();
    let chosen =
        equal.iter().find(|n| ask.detected.iter().any(|d| d == *n)).copied().unwrap_or(equal[0]);
    let fit = format!("{} of {} events", best.matched, best.total);
    notes.push(match equal.len() {
        1 => format!("table {chosen} chosen by the events' names ({fit})"),
        _ => format!(
            "table {chosen} chosen by the events' names ({fit}); {} fit as well: --uarch decides",
            equal.iter().filter(|n| **n != chosen).copied().collect::<Vec<_>>().join(", ")
        ),
    });
    library.load(chosen)
}

fn frame(recording: &Recording, table: &Table, ask: &ImportAsk, imported: &Imported) -> Report {
    let live = !recording.sessions.is_empty();
    let mut report = Report::new(if live { Source::Session } else { Source::Imported });
    report.uarch.clone_from(&table.name);
    report.title.clone_from(&table.title);
    report.subject = ask.files.iter().map(|f| f.display().to_string()).collect();
    let skipped = recording.skipped.iter().map(|s| Unread {
        file: recording.sources.get(s.source).map(|f| f.path.display().to_string()).unwrap_or_default(),
        line: s.line as usize,
        text: s.text.clone(),
        why: s.why.clone(),
    });
    let unknown = imported.findings.unknown.iter().map(|u| {
        let (file, line) = u.place.rsplit_once(':').unwrap_or((&u.place, "0"));
        Unread {
            file: file.to_owned(),
            line: line.parse().unwrap_or(0),
            text: u.name.clone(),
            why: format!("the table {} has no such event", table.name),
        }
    });
    report.unread = skipped.chain(unknown).collect();
    if recording.skipped_more > 0 {
        report.notes.push(format!("{} more lines were not understood", recording.skipped_more));
    }
    report
}

fn reports(base: Report, table: &Table, ask: &ImportAsk, imported: &Imported) -> Result<Vec<Report>> {
    let several = imported.counts.iter().filter(|c| c.interval.is_some()).count() > 1;
    let whole: Vec<Counts>;
    let parts: Vec<&[Counts]> = if ask.intervals {
        imported.counts.chunk_by(|a, b| a.interval == b.interval).collect()
    } else if several {
        whole = recorded::aggregate(&imported.counts, Over::Intervals);
        vec![&whole]
    } else {
        vec![&imported.counts]
    };
    let mut evaluator = Evaluator::new(table);
    let level = match (ask.ask.level, &ask.ask.nodes) {
        (Some(level), _) => level,
        (None, Some(_)) => table.depth(),
        (None, None) => deepest_complete(table, &mut evaluator, &parts),
    };
    let chosen = ask.ask.at_level(table, level)?;
    let mut reports = Vec::new();
    for part in parts {
        let mut report = base.clone();
        report.level = chosen.level;
        for counts in part {
            let mut rows = report::parts(&mut evaluator, table, counts, &chosen.selection);
            advise(table, &mut rows.findings);
            rows.info.retain(|i| i.value.is_some());
            report.nodes.extend(rows.nodes);
            report.bottlenecks.extend(rows.bottlenecks);
            report.info.extend(rows.info);
            report.findings.extend(rows.findings);
            for note in &counts.notes {
                if !report.notes.contains(note) {
                    report.notes.push(note.clone());
                }
            }
        }
        let times = part.iter().filter_map(|c| c.constants[1]);
        report.duration = times.reduce(f64::max).map(|ms| ms / 1e3);
        report.software = software(imported, part);
        reports.push(report);
    }
    Ok(reports)
}

/// Software counts, where there is one set of them.
fn software(imported: &Imported, part: &[Counts]) -> BTreeMap<String, Option<f64>> {
    let here = |s: &&recorded::Software| {
        imported.software.len() == 1 || part.iter().any(|c| c.interval == s.interval && c.scope == s.scope)
    };
    let found: Vec<&recorded::Software> = imported.software.iter().filter(here).collect();
    let [only] = found.as_slice() else { return BTreeMap::new() };
    only.values.iter().map(|(name, value)| ((*name).to_owned(), value.clone().ok())).collect()
}

/// The deepest level all of whose nodes have their counts; 1 if there is none.
fn deepest_complete(table: &Table, evaluator: &mut Evaluator, parts: &[&[Counts]]) -> u32 {
    let mut complete = table.depth();
    for counts in parts.iter().flat_map(|p| p.iter()) {
        let evaluation = evaluator.values(counts);
        for (n, node) in table.tree() {
            let value = &evaluation.nodes[usize::from(n)].quantity.value;
            if !matches!(value, Ok(_) | Err(Missing::Undefined(_))) {
                complete = complete.min(node.level - 1);
            }
        }
    }
    complete.max(1)
}
