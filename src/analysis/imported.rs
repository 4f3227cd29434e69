//! Recorded counts → report.

use super::advise::advise;
use super::choose::Ask;
use super::software;
use crate::collect::recorded::{self, Imported, Over, Recording};
use crate::counts::Counts;
use crate::error::{Error, Result};
use crate::machine::{Machine, choose};
use crate::quantity::Missing;
use crate::report::document::Unread;
use crate::report::{self, Report, Source};
use crate::tables::{Const, Library, Table};
use crate::topdown::Evaluator;
use std::path::PathBuf;
use std::time::Duration;

/// How many equally good tables are named one by one.
const NAMED: usize = 5;

/// What to import and what to show of it.
#[derive(Debug, Clone, Default)]
pub struct ImportAsk<'m> {
    /// The files, in order.
    pub files: Vec<PathBuf>,
    /// Which nodes.
    pub ask: Ask,
    /// The table; `None`: the one that fits the events best.
    pub uarch: Option<String>,
    /// This machine, which decides between tables that fit equally well.
    pub machine: Option<&'m Machine>,
    /// One report per interval instead of one for all of them.
    pub intervals: bool,
}

/// Reads the files and evaluates them: one report, or one per interval.
///
/// # Errors
/// A file that cannot be read or understood; counts that no table, or not the forced one, fits.
pub fn imported(library: &Library, ask: &ImportAsk<'_>) -> Result<Vec<Report>> {
    let recording = recorded::read(&ask.files)?;
    let mut notes = recording.notes.clone();
    let tables = tables(library, &recording, ask, &mut notes)?;
    let options = recorded::Options { library: Some(library), forced: ask.uarch.is_some() };
    let mut cores = Vec::new();
    for table in tables {
        let imported = recorded::counts(&recording, &table, options)?;
        let sibling = format!("{}-e", table.name);
        let other = imported.findings.other_core > 0 && library.names().any(|n| n == sibling);
        cores.push(Core { table, imported });
        if other && cores.len() == 1 {
            // A hybrid's recording holds both kinds of core: one tree each.
            let table = library.load(&sibling)?;
            let imported = recorded::counts(&recording, &table, options)?;
            cores.push(Core { table, imported });
        }
    }
    let nothing = |c: &Core| c.imported.counts.is_empty() && c.imported.software.is_empty();
    if cores.iter().all(nothing) {
        return Err(Error::failed("no counts were recognised")
            .because(nothing_read(&recording))
            .hint("perf stat -x, or -j, toplev --valcsv, event,value CSV and tdtool sessions are read"));
    }
    let mut base = frame(&recording, &cores, ask);
    base.notes = notes;
    for note in cores.iter().flat_map(|c| &c.imported.findings.notes) {
        if !base.notes.contains(note) {
            base.notes.push(note.clone());
        }
    }
    reports(&base, &mut cores, ask)
}

/// One kind of core: its table and the counts of its events.
struct Core {
    table: Table,
    imported: Imported,
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

/// The forced table, the session's tables, or the best match.
fn tables(
    library: &Library,
    recording: &Recording,
    ask: &ImportAsk<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Table>> {
    if let Some(name) = &ask.uarch {
        return Ok(vec![library.load(name)?]);
    }
    if let Some(session) = recording.sessions.first() {
        let parse = |t: &crate::session::StoredTable| Table::parse(&t.text, &t.name);
        return session.tables.iter().map(parse).collect();
    }
    let matches = recorded::best_tables(recording, library);
    let best = matches.first().filter(|m| m.matched > 0).ok_or_else(|| {
        Error::failed("no table knows these events")
            .because(nothing_read(recording))
            .hint("name the processor's table with --uarch; `tdtool tables list` has them all")
    })?;
    let equal: Vec<&str> =
        matches.iter().take_while(|m| m.matched == best.matched).map(|m| m.name.as_str()).collect();
    let here = match (equal.len(), ask.machine) {
        (0 | 1, _) | (_, None) => Vec::new(),
        (_, Some(machine)) => choose(machine, library, None).unwrap_or_default(),
    };
    let is_here = |n: &&&str| here.iter().any(|t| t.table == **n);
    let chosen = equal.iter().find(is_here).copied().unwrap_or(equal[0]);
    let fit = format!("{} of {} events", best.matched, best.total);
    notes.push(match equal.len() {
        1 => format!("table {chosen} chosen by the events' names ({fit})"),
        n if n <= NAMED => format!(
            "table {chosen} chosen by the events' names ({fit}); {} fit as well: --uarch decides",
            equal.iter().filter(|n| **n != chosen).copied().collect::<Vec<_>>().join(", ")
        ),
        n => format!(
            "table {chosen} chosen, but {} others know these events as well ({fit}): --uarch decides",
            n - 1
        ),
    });
    Ok(vec![library.load(chosen)?])
}

fn frame(recording: &Recording, cores: &[Core], ask: &ImportAsk<'_>) -> Report {
    let live = !recording.sessions.is_empty();
    let mut report = Report::new(if live { Source::Session } else { Source::Imported });
    let names: Vec<&str> = cores.iter().map(|c| c.table.name.as_str()).collect();
    report.uarch = names.join("+");
    report.title = cores.first().map(|c| c.table.title.clone()).unwrap_or_default();
    report.subject = ask.files.iter().map(|f| f.display().to_string()).collect();
    let skipped = recording.skipped.iter().map(|s| Unread {
        file: recording
            .sources
            .get(s.source)
            .map(|f| f.path.display().to_string())
            .unwrap_or_default(),
        line: s.line as usize,
        text: s.text.clone(),
        why: s.why.clone(),
    });
    let unknown = cores.first().into_iter().flat_map(|core| {
        core.imported.findings.unknown.iter().map(|u| {
            let (file, line) = u.place.rsplit_once(':').unwrap_or((&u.place, "0"));
            Unread {
                file: file.to_owned(),
                line: line.parse().unwrap_or(0),
                text: u.name.clone(),
                why: format!("the table {} has no such event", core.table.name),
            }
        })
    });
    report.unread = skipped.chain(unknown).collect();
    if recording.skipped_more > 0 {
        report.notes.push(format!("{} more lines were not understood", recording.skipped_more));
    }
    report
}

/// One report, or one per interval.
fn reports(base: &Report, cores: &mut [Core], ask: &ImportAsk<'_>) -> Result<Vec<Report>> {
    for core in cores.iter_mut() {
        whole_or_intervals(&mut core.imported.counts, ask.intervals);
    }
    if !ask.intervals {
        for core in cores.iter_mut() {
            let counts = &core.imported.counts;
            if counts.iter().filter(|c| c.interval.is_some()).count() > 1 {
                core.imported.counts = recorded::aggregate(counts, Over::Intervals);
            }
        }
        return Ok(vec![report(base, cores, ask, |_| true)?]);
    }
    let mut intervals: Vec<Option<(Duration, Duration)>> = Vec::new();
    for counts in cores.iter().flat_map(|c| &c.imported.counts) {
        if !intervals.contains(&counts.interval) {
            intervals.push(counts.interval);
        }
    }
    intervals.into_iter().map(|i| report(base, cores, ask, |c| c.interval == i)).collect()
}

/// A session holds its intervals and, unless it was cut off, the whole run once more: keeps what
/// was asked for, so that nothing counts twice.
fn whole_or_intervals(counts: &mut Vec<Counts>, intervals: bool) {
    let (whole, parts) = counts.iter().partition::<Vec<_>, _>(|c| c.interval.is_none());
    if !whole.is_empty() && !parts.is_empty() {
        counts.retain(|c| c.interval.is_some() == intervals);
    }
}

/// The report of the counts that `wanted` takes.
fn report(
    base: &Report,
    cores: &[Core],
    ask: &ImportAsk<'_>,
    wanted: impl Fn(&Counts) -> bool,
) -> Result<Report> {
    let mut report = base.clone();
    for core in cores {
        let table = &core.table;
        let part: Vec<&Counts> = core.imported.counts.iter().filter(|c| wanted(c)).collect();
        let mut evaluator = Evaluator::new(table);
        let level = match (ask.ask.level, &ask.ask.nodes) {
            (Some(level), _) => level,
            (None, Some(_)) => table.depth(),
            (None, None) => deepest_complete(table, &mut evaluator, &part),
        };
        let chosen = ask.ask.at_level(table, level)?;
        report.level = report.level.max(chosen.level);
        for &counts in &part {
            let mut counts = counts.clone();
            if cores.len() > 1 {
                counts.core = Some(table.name.clone());
            }
            let mut rows = report::parts(&mut evaluator, table, &counts, &chosen.selection);
            advise(table, &mut rows.findings);
            rows.info.retain(|i| i.value.is_some());
            report.nodes.extend(rows.nodes);
            report.bottlenecks.extend(rows.bottlenecks);
            report.info.extend(rows.info);
            report.findings.extend(rows.findings);
            let new = |n: &&String| !report.notes.contains(n);
            let new: Vec<String> = counts.notes.iter().filter(new).cloned().collect();
            report.notes.extend(new);
        }
        let times = part.iter().filter_map(|c| c.constants[Const::DurationMs.index()]);
        report.duration = times.reduce(f64::max).map(|ms| ms / 1e3).or(report.duration);
        if report.software.is_empty() {
            report.software = software_of(&core.imported, &part);
        }
    }
    Ok(report)
}

/// Software counts, where there is one set of them.
fn software_of(imported: &Imported, part: &[&Counts]) -> software::Table {
    let here = |s: &&recorded::Software| {
        imported.software.len() == 1
            || part.iter().any(|c| c.interval == s.interval && c.scope == s.scope)
    };
    let found: Vec<&recorded::Software> = imported.software.iter().filter(here).collect();
    let [only] = found.as_slice() else { return software::Table::new() };
    software::recorded(only.values.iter().map(|(name, value)| (name.as_ref(), value)))
}

/// The deepest level all of whose nodes have their counts; 1 if there is none. A shallower level
/// may miss a node: on Zen, `smt_contention` has no children and is often left uncounted.
fn deepest_complete(table: &Table, evaluator: &mut Evaluator, parts: &[&Counts]) -> u32 {
    let mut complete = vec![true; table.depth() as usize + 1];
    for counts in parts {
        let evaluation = evaluator.values(counts);
        for (n, node) in table.tree() {
            let value = &evaluation.nodes[usize::from(n)].quantity.value;
            complete[node.level as usize] &= matches!(value, Ok(_) | Err(Missing::Undefined(_)));
        }
    }
    (1..=table.depth()).rev().find(|&l| complete[l as usize]).unwrap_or(1)
}
