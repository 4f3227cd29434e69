//! Reads the files of counts, chooses their tables, and evaluates the counts down to the level that the recording has
//! all of.

use super::{ImportAsk, choice, nothing_read, sibling};
use crate::notes::add_new;
use crate::topdown::{self, advise, software};
use profile::counts::{self, Imported, Over, Recording};
use profile::session::NO_SAMPLES;
use report::documents::report::Unread;
use report::documents::{self, Report, Source};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tma::counts::{Counts, GroupCounts};
use tma::quantity::{Measured, Missing};
use tma::tables::texts::Texts;
use tma::tables::{Const, CoreKind, EventId, Library, Table};
use tma::tree::{Evaluation, Evaluator};
use tma::{Error, Result};

/// Reads the files and evaluates them: one report, or one per interval.
///
/// # Errors
/// A file that cannot be read or understood; counts that no table, or not the forced one, fits.
///
/// ```
/// use report::render::report::{Style, render};
/// use engine::topdown::{ImportAsk, imported};
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("counts.csv");
/// // 1000 cycles of 4 slots, in the terms of Yasin's paper (ISPASS 2014).
/// let counts = "event,value\nTotalSlots,4000\nFetchBubbles,400\nSlotsIssued,1300\n\
///               SlotsRetired,1200\nRecoveryBubbles,100\n";
/// std::fs::write(&file, counts)?;
///
/// let ask = ImportAsk { files: vec![file], ..ImportAsk::default() };
/// let report = imported(&engine::library(), &ask)?.remove(0);
/// assert_eq!(report.uarch, "paper", "the table that has these events");
/// // Front end 400 / 4000, bad speculation (1300 - 1200 + 100) / 4000, retiring 1200 / 4000; the
/// // rest is the back end's: 55 %, over its threshold of 20 %.
/// let bottleneck = report.nodes.iter().find(|node| node.bottleneck).expect("a bottleneck");
/// assert_eq!(bottleneck.id, "Backend_Bound");
/// assert!(bottleneck.value.is_some_and(|share| (share - 0.55).abs() < 1e-9));
///
/// let text = render(&report, &Style { ascii: true, ..Style::default() });
/// assert!(text.lines().any(|line| line.contains("Backend Bound") && line.contains("55.0 %")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn imported(library: &Library, ask: &ImportAsk) -> Result<Vec<Report>> {
    of_counts(library, ask, counts::read(&ask.files)?)
}

/// As [`imported`], of counts that were read from the files.
pub(crate) fn of_counts(
    library: &Library,
    ask: &ImportAsk,
    recording: Recording,
) -> Result<Vec<Report>> {
    if recording.sessions.len() > 1 || (!recording.sessions.is_empty() && ask.files.len() > 1) {
        return Err(Error::usage("a session cannot be combined with other files").hint(
            "report each with --format json --output FILE, then compare them with `tdtool diff`",
        ));
    }
    let mut notes = recording.notes.clone();
    let chosen = choice(library, &recording, ask, &mut notes)?;
    // The chosen table fits best: no other needs to be looked for.
    let forced = ask.uarch.is_some();
    let others = forced || !recording.sessions.is_empty();
    let options = counts::Options { library: others.then_some(library), forced };
    let mut cores = Vec::new();
    for table in chosen.tables {
        let imported = counts::counts(&recording, &table, options)?;
        let other = sibling(&table.name, library).filter(|_| imported.other_core > 0);
        cores.push(ImportedCore { table, texts: library.texts(), imported });
        if let (Some(other), 1) = (other, cores.len()) {
            // A hybrid's recording holds both kinds of core: one tree each, that of the big cores first.
            let table = library.load(&other)?;
            let imported = counts::counts(&recording, &table, options)?;
            let place = usize::from(table.core != Some(CoreKind::P));
            cores.insert(place, ImportedCore { table, texts: library.texts(), imported });
        }
    }
    let nothing = |c: &ImportedCore| c.imported.counts.is_empty() && c.imported.software.is_empty();
    // A recording that was cut off may have samples all the same.
    let sampled = recording.sessions.iter().any(|s| s.samples > 0);
    if cores.iter().all(nothing) && !sampled {
        let (what, remedy) = match recording.sessions.is_empty() {
            true => ("no counts were recognised", counts::formats()),
            false => (
                "the recording has neither counts nor samples",
                "record again, for longer".to_owned(),
            ),
        };
        return Err(Error::failed(what).because(nothing_read(&recording)).hint(remedy));
    }
    // A table that was not chosen for its events misses none.
    let missed = cores.first().filter(|_| !chosen.software_only);
    let mut base = frame(&recording, &cores, missed, ask);
    if chosen.software_only {
        base.uarch.clear();
        base.title.clear();
        cores.iter_mut().for_each(|c| c.imported.counts.clear());
    }
    base.notes.extend(notes);
    if recording.sessions.iter().any(|s| s.sampled.is_some() && s.samples == 0) {
        base.notes.push(NO_SAMPLES.to_owned());
    }
    add_new(&mut base.notes, cores.iter().flat_map(|c| c.imported.notes.clone()));
    let several = recording.sources.len() > 1
        || recording.blocks.iter().any(|b| b.run > 0 || b.trial.is_some());
    if several && cores.iter().any(|c| c.imported.software.len() > 1) {
        cores.iter_mut().for_each(|c| c.imported.software.clear());
        base.notes.push("software counts of several runs are not shown".into());
    }
    reports(&base, &mut cores, ask)
}

/// Begin and end; `None` for the whole run.
type Interval = Option<(Duration, Duration)>;

/// One kind of core: its table and the counts of its events.
struct ImportedCore {
    table: Arc<Table>,
    texts: Texts,
    imported: Imported,
}

/// The report without counts; events that the table of `missed` does not have are unread.
fn frame(
    recording: &Recording,
    cores: &[ImportedCore],
    missed: Option<&ImportedCore>,
    ask: &ImportAsk,
) -> Report {
    let live = !recording.sessions.is_empty();
    let mut report = Report::new(if live { Source::Session } else { Source::Imported });
    let names: Vec<&str> = cores.iter().map(|c| c.table.name.as_str()).collect();
    report.uarch = names.join("+");
    report.title = cores.first().map(|c| c.table.title.clone()).unwrap_or_default();
    report.subject = ask.files.iter().map(|f| f.display().to_string()).collect();
    if let [session] = recording.sessions.as_slice() {
        let words = session.header.get("command").and_then(|c| c.as_array());
        let words = words.map(|w| w.iter().filter_map(|w| Some(w.as_str()?.to_owned())).collect());
        report.command = words.filter(|w: &Vec<String>| !w.is_empty());
        let target = session.header.get("target").cloned();
        report.target = target.and_then(|target| serde_json::from_value(target).ok());
        report.subject.extend(report.target.as_ref().and_then(topdown::words));
        let warning = session.header.get("warning").and_then(|w| w.as_str());
        report.notes.extend(warning.map(str::to_owned));
    }
    let file = |source: usize| {
        let source = recording.sources.get(source);
        source.map(|source| source.path.display().to_string()).unwrap_or_default()
    };
    let skipped = recording.skipped.iter().map(|s| Unread {
        file: file(s.source),
        line: s.line as usize,
        text: s.text.clone(),
        why: s.why.to_string(),
    });
    let unknown = missed.into_iter().flat_map(|core| {
        core.imported.unknown.iter().map(|u| {
            let why = format!("the table {} has no such event", core.table.name);
            Unread { file: file(u.source), line: u.line as usize, text: u.name.clone(), why }
        })
    });
    report.unread = skipped.chain(unknown).collect();
    if recording.skipped_more > 0 {
        report.notes.push(format!("{} more lines were not understood", recording.skipped_more));
    }
    report
}

/// One report, or one per interval.
fn reports(base: &Report, cores: &mut [ImportedCore], ask: &ImportAsk) -> Result<Vec<Report>> {
    let is_hybrid = cores.len() > 1;
    for core in cores.iter_mut() {
        whole_or_intervals(&mut core.imported.counts, ask.intervals);
        if is_hybrid {
            let name = &core.table.name;
            core.imported.counts.iter_mut().for_each(|c| c.core = Some(name.clone()));
        }
    }
    if !ask.intervals {
        for core in cores.iter_mut() {
            let counts = &core.imported.counts;
            if counts.iter().filter(|c| c.interval.is_some()).count() > 1 {
                core.imported.counts = counts::aggregate(counts, Over::Intervals);
            }
        }
        return Ok(vec![report(base, cores, ask, |_| true)?]);
    }
    let mut intervals: Vec<Interval> = Vec::new();
    for core in cores.iter() {
        let counts = core.imported.counts.iter().map(|c| c.interval);
        let software = core.imported.software.iter().map(|s| s.interval);
        for interval in counts.chain(software) {
            // A whole run beside its intervals would come twice.
            let whole_beside = interval.is_none() && !intervals.is_empty();
            if !whole_beside
                && intervals.last() != Some(&interval)
                && !intervals.contains(&interval)
            {
                intervals.push(interval);
            }
        }
    }
    let one = |i: Interval| {
        let mut one = report(base, cores, ask, |other| other == i)?;
        one.interval = i.map(|(a, b)| (a.as_secs_f64(), b.as_secs_f64()));
        Ok(one)
    };
    intervals.into_iter().map(one).collect()
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
    cores: &[ImportedCore],
    ask: &ImportAsk,
    wanted: impl Fn(Interval) -> bool,
) -> Result<Report> {
    let mut report = base.clone();
    for core in cores {
        let table = &core.table;
        let mut evaluator = Evaluator::new(table);
        let parts: Vec<Evaluated> = core
            .imported
            .counts
            .iter()
            .filter(|counts| wanted(counts.interval))
            .map(|counts| Evaluated { counts, evaluation: evaluator.evaluate(counts) })
            .collect();
        let level = match (ask.ask.level, &ask.ask.nodes) {
            (Some(level), _) => level,
            (None, Some(_)) => table.depth(),
            (None, None) => {
                let level = deepest_complete(table, &parts);
                add_new(&mut report.notes, next_level(table, &parts, level));
                level
            }
        };
        let chosen = ask.ask.at_level(table, level)?;
        report.level = report.level.max(chosen.level);
        for Evaluated { counts, evaluation } in &parts {
            let mut rows = documents::part(table, counts, evaluation, &chosen.selection);
            advise(core.texts, table, &mut rows.findings);
            // Without a count only constants of the machine have values.
            let is_counted = rows.nodes.iter().any(|n| n.value.is_some())
                || counts.groups.iter().any(GroupCounts::has_counts);
            rows.info.retain(|i| i.value.is_some() && is_counted);
            report.add(rows);
            add_new(&mut report.notes, counts.notes.clone());
        }
        let times = parts.iter().filter_map(|p| p.counts.constants[Const::DurationMs.index()]);
        report.duration = times.reduce(f64::max).map(|ms| ms / 1e3).or(report.duration);
        if report.software.is_empty() {
            let wall_ms = report.duration.map(|s| s * 1e3);
            let parts = software_parts(&core.imported, &wanted);
            software::enter(&mut report, software::recorded(parts, wall_ms));
        }
    }
    Ok(report)
}

/// The software counts of the parts that `wanted` takes: those of the whole run where it has its
/// own, else those of its intervals.
fn software_parts<'a>(
    imported: &'a Imported,
    wanted: &impl Fn(Interval) -> bool,
) -> impl Iterator<Item = &'a BTreeMap<String, Measured>> {
    let here: Vec<_> = imported.software.iter().filter(|s| wanted(s.interval)).collect();
    let whole = here.iter().any(|s| s.interval.is_none());
    here.into_iter().filter(move |s| !whole || s.interval.is_none()).map(|s| &s.values)
}

/// The counts of a part, and the values of all nodes by them.
struct Evaluated<'a> {
    counts: &'a Counts,
    evaluation: Evaluation,
}

/// Events that a note lists.
const LISTED: usize = 3;

/// The deepest level all of whose nodes have their counts; 1 if there is none. A shallower level
/// may miss a node: on Zen, `smt_contention` has no children and is often left uncounted.
fn deepest_complete(table: &Table, parts: &[Evaluated]) -> u32 {
    let mut complete = vec![true; table.depth() as usize + 1];
    for Evaluated { evaluation, .. } in parts {
        for (n, node) in table.tree() {
            let value = &evaluation.nodes[usize::from(n)].quantity.value;
            complete[node.level as usize] &= matches!(value, Ok(_) | Err(Missing::Undefined(_)));
        }
    }
    (1..=table.depth()).rev().find(|&l| complete[l as usize]).unwrap_or(1)
}

/// Why the level after the deepest complete one is not shown, where the recording has part of it.
fn next_level(table: &Table, parts: &[Evaluated], level: u32) -> Option<String> {
    let next = level + 1;
    let nodes = || table.tree().filter(|(_, node)| node.level == next);
    let mut some = false;
    let mut lacking: Vec<EventId> = Vec::new();
    for Evaluated { counts, evaluation } in parts {
        let has_value = |n| evaluation.nodes[usize::from(n)].quantity.value.is_ok();
        some |= nodes().any(|(n, _)| has_value(n));
        let counted = |event: &EventId| {
            counts.groups.iter().any(|group| {
                let at = group.events().position(|own| own == *event);
                at.is_some_and(|at| group.total(at).is_ok())
            })
        };
        for (n, _) in nodes().filter(|(n, _)| !has_value(*n)) {
            let needs = table.events_of(n, false).iter().filter(|event| !counted(event));
            lacking.extend(needs);
        }
    }
    lacking.sort_unstable();
    lacking.dedup();
    if !some || lacking.is_empty() {
        return None;
    }
    let name = |event: &EventId| table.events[usize::from(*event)].name.as_str();
    let mut names: Vec<&str> = lacking.iter().take(LISTED).map(name).collect();
    let more = format!("{} more", lacking.len().saturating_sub(LISTED));
    if lacking.len() > LISTED {
        names.push(&more);
    }
    Some(format!(
        "level {next} is left out: the recording has no count of {}; --level {next} shows the rest of it",
        names.join(", ")
    ))
}
