//! A recording and a table → counts of the table's events, with what a report must state.

use super::groups::{self, Groups, Meaning, Mode};
use super::names::{Match, Names, TableMatch, best_tables};
use super::recording::{Block, Count, NameId, Recording, Row, SoftwareKind};
use super::sessions::{self, Imported, Software, UnknownEvent};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;
use tma::counts::{Counts, GroupCounts};
use tma::error::{Error, Result};
use tma::quantity::{Measured, Missing};
use tma::tables::{Const, EventId, Library, PmuKind, Table};

/// How strictly the table must fit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Tables to suggest if the chosen one does not fit.
    pub library: Option<&'a Library>,
    /// The user chose the table: only a recording without any of its events is refused.
    pub forced: bool,
}

/// Maps the rows of `recording` to events of `table`.
///
/// Values are not scaled: the recorder did that. An event counted in several groups has a value in
/// each; nothing is summed (see [`super::aggregate`]).
///
/// # Errors
/// The recording does not fit the table; the hint names those that do.
pub fn counts(recording: &Recording, table: &Table, options: Options) -> Result<Imported> {
    let importer = Importer::new(recording, table, options.forced);
    importer.refuse_wrong_table(options)?;
    let mut imported = importer.unmatched(options);
    let summary_only = !recording.blocks.iter().any(|b| !b.summary);
    for block in &recording.blocks {
        if block.summary && !summary_only {
            continue;
        }
        importer.block(block, &mut imported);
    }
    for session in &recording.sessions {
        sessions::add_session(session, table, &mut imported)?;
    }
    Ok(imported)
}

struct Importer<'a> {
    recording: &'a Recording,
    table: &'a Table,
    names: Names<'a>,
    meaning: Vec<Meaning>,
    groups: Groups,
    durations: HashMap<(usize, u32, Option<String>, Option<Duration>), f64>,
    needs: Vec<&'a [EventId]>,
    /// Events that each level-1 node needs.
    first_level: Vec<&'a [EventId]>,
}

impl<'a> Importer<'a> {
    fn new(recording: &'a Recording, table: &'a Table, forced: bool) -> Self {
        let names = match forced {
            true => Names::chosen(table, recording.names.iter().map(String::as_str)),
            false => Names::new(table),
        };
        let meaning = recording.names.iter().map(|name| Meaning::of(name, &names, table)).collect();
        let first = table.tree().filter(|(_, node)| node.level == 1);
        let nodes = 0..u16::try_from(table.nodes.len()).unwrap_or(u16::MAX);
        Self {
            recording,
            table,
            names,
            meaning,
            groups: Groups::new(recording),
            durations: durations(recording),
            needs: nodes.map(|n| table.events_of(n, false)).collect(),
            first_level: first.map(|(n, _)| table.events_of(n, false)).collect(),
        }
    }

    fn meaning(&self, name: NameId) -> Match {
        self.meaning.get(name as usize).map_or(Match::Unknown, |meaning| meaning.found)
    }

    /// Names of the hardware events that occur, each once, with their meaning.
    fn hardware_names(&self) -> Vec<(NameId, Match)> {
        let mut seen = HashSet::new();
        let rows = self.recording.blocks.iter().flat_map(|b| &b.rows);
        rows.filter(|r| seen.insert(r.name)).map(|r| (r.name, self.meaning(r.name))).collect()
    }

    fn refuse_wrong_table(&self, options: Options) -> Result<()> {
        let names = self.hardware_names();
        let known = names.iter().filter(|(_, m)| matches!(m, Match::Event { .. })).count();
        let unknown = names.iter().filter(|(_, m)| *m == Match::Unknown).count();
        let total = known + unknown;
        let enough = if options.forced { known > 0 } else { known * 2 >= total };
        if total == 0 || enough {
            return Ok(());
        }
        let better: Vec<TableMatch> = options
            .library
            .map(|l| best_tables(self.recording, l))
            .unwrap_or_default()
            .into_iter()
            .filter(|m| m.matched > known)
            .collect();
        if better.is_empty() && known > 0 {
            return Ok(());
        }
        let example = names.iter().find(|(_, m)| *m == Match::Unknown);
        let example = example.map_or("", |(n, _)| self.recording.name(*n));
        let error = Error::failed(format!(
            "these counts are not for {}: it has {known} of the recording's {total} events",
            self.table.name
        ))
        .because(format!("for instance, it has no `{example}`"));
        let Some(best) = better.first() else {
            return Err(error.hint("name the processor they were counted on with --uarch NAME"));
        };
        let alike = better.iter().take_while(|m| m.matched == best.matched).take(6);
        let alike: Vec<&str> = alike.map(|m| m.name.as_str()).collect();
        Err(error.hint(format!(
            "`--uarch {}` has {} of them{}",
            best.name,
            best.matched,
            match alike.len() {
                1 => String::new(),
                _ => format!(" (as have {})", alike[1..].join(", ")),
            }
        )))
    }

    /// An import without counts yet: events that the table does not have, and notes.
    fn unmatched(&self, options: Options) -> Imported {
        let mut imported = Imported { notes: self.recording.notes.clone(), ..Imported::default() };
        let mut at: HashMap<NameId, usize> = HashMap::new();
        for block in &self.recording.blocks {
            for row in &block.rows {
                match self.meaning(row.name) {
                    Match::OtherCore => imported.other_core += 1,
                    Match::Unknown => {
                        let i = *at.entry(row.name).or_insert_with(|| {
                            imported.unknown.push(UnknownEvent {
                                name: self.recording.name(row.name).to_owned(),
                                source: block.source,
                                line: row.line,
                                occurrences: 0,
                            });
                            imported.unknown.len() - 1
                        });
                        imported.unknown[i].occurrences += 1;
                    }
                    _ => {}
                }
            }
        }
        if self.recording.blocks.iter().any(|b| b.summary)
            && self.recording.blocks.iter().any(|b| !b.summary)
        {
            imported
                .notes
                .push("perf's summary lines repeat its intervals and are not used".into());
        }
        if !imported.unknown.is_empty()
            && imported.other_core == 0
            && let Some(library) = options.library
        {
            imported.notes.extend(self.better_table(library));
        }
        imported
    }

    /// A note on a table that has more of the recording's events than the chosen one.
    fn better_table(&self, library: &Library) -> Option<String> {
        let known =
            self.hardware_names().iter().filter(|(_, m)| matches!(m, Match::Event { .. })).count();
        let tables = best_tables(self.recording, library);
        let best = tables.first().filter(|best| best.matched > known)?;
        Some(format!(
            "{} has {known} of the recording's events, {} has {}: if the counts come from such a \
             processor, use --uarch {}",
            self.table.name, best.name, best.matched, best.name
        ))
    }

    fn block(&self, block: &Block, imported: &mut Imported) {
        let mut counts = Counts {
            core: self.table.core.is_some().then(|| self.table.name.clone()),
            scope: self.recording.label(block),
            interval: block.interval,
            constants: block.constants,
            ..Counts::default()
        };
        let duration = &mut counts.constants[Const::DurationMs.index()];
        if duration.is_none() {
            *duration = self.durations.get(&duration_key(block)).copied().or_else(|| {
                block.interval.map(|(begin, end)| (end - begin).as_secs_f64() * 1000.0)
            });
        }
        if let Some(software) = self.software(block, &counts) {
            imported.software.push(software);
        }
        let of = |row: &Row| self.meaning.get(row.name as usize).copied().unwrap_or_default();
        let meanings: Vec<Meaning> = block.rows.iter().map(of).collect();
        let modes = groups::modes(&meanings, &self.first_level);
        for &mode in &modes {
            let mut part = counts.clone();
            if modes.len() > 1 {
                part.scope = mode.joined(part.scope);
            } else {
                part.notes.extend(mode.note());
            }
            self.fill(block, mode, &mut part);
            imported.counts.push(part);
        }
        if let Some(last) = imported.counts.last_mut().filter(|_| !modes.is_empty()) {
            last.notes.extend(self.unused(block, &modes));
        } else if block.rows.is_empty() && !block.software.is_empty() {
            imported.counts.push(counts);
        }
    }

    /// The events of one mode.
    fn fill(&self, block: &Block, mode: Mode, counts: &mut Counts) {
        let event = |name: NameId| self.meaning.get(name as usize)?.in_mode(mode);
        let cover = |held: &[EventId]| {
            let has_all = |needs: &&&[EventId]| needs.iter().all(|e| held.contains(e));
            self.needs.iter().filter(|n| !n.is_empty()).filter(has_all).count()
        };
        for rows in self.groups.of(block, mode, &event, &cover).iter() {
            let mut events: Vec<(EventId, std::result::Result<f64, Missing>)> = Vec::new();
            let mut running: Option<f64> = None;
            for row in rows.iter().map(|i| &block.rows[*i]) {
                let Some(id) = event(row.name) else { continue };
                events.push((id, self.value(id, row)));
                if let Some(share) = row.running {
                    running = Some(running.map_or(share, |r| r.min(share)));
                }
            }
            for i in 0..events.len() {
                for other in self.names.same_count(events[i].0).collect::<Vec<_>>() {
                    if !events.iter().any(|(e, _)| *e == other) {
                        events.push((other, events[i].1.clone()));
                    }
                }
            }
            if !events.is_empty() {
                counts.groups.push(GroupCounts::Imported {
                    events,
                    running,
                    intervals: Vec::new(),
                });
            }
        }
    }

    /// Notes of events that none of the modes shown has.
    fn unused(&self, block: &Block, modes: &[Mode]) -> Vec<String> {
        let names: BTreeSet<NameId> = block.rows.iter().map(|row| row.name).collect();
        let is_unused = |name: &NameId| {
            let meaning = self.meaning.get(*name as usize).copied().unwrap_or_default();
            meaning.is_event() && !modes.iter().any(|mode| meaning.in_mode(*mode).is_some())
        };
        let shown: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
        let note = |name| {
            let name = self.recording.name(name);
            format!("{name} is not used: the tree is of events counted in {}", shown.join(" and "))
        };
        names.into_iter().filter(is_unused).map(note).collect()
    }

    /// The count of a row in the unit of the table's event.
    fn value(&self, id: EventId, row: &Row) -> std::result::Result<f64, Missing> {
        let event = &self.table.events[usize::from(id)];
        let value = match row.count {
            Count::Value(value) => value,
            Count::NotCounted => return Err(Missing::NotCounted(event.name.clone().into())),
            Count::NotSupported => return Err(Missing::NotSupported(event.name.clone().into())),
        };
        match row.unit.map(|u| self.recording.name(u)) {
            None => Ok(value),
            // perf prints energy in joules; the vendor's formulas take units of 61 µJ for the
            // package and 15.6 µJ for DRAM.
            Some("Joules") if event.spec.pmu == PmuKind::Power => {
                let dram = event.name.to_lowercase().contains("dram");
                Ok(value / if dram { 15.6e-6 } else { 61e-6 })
            }
            Some(unit) => Err(Missing::NotMeasured(
                format!("{} is recorded in {unit}, not as a count", event.name).into(),
            )),
        }
    }

    /// A software count in the unit that perf prints; files of other tools may have another unit.
    fn as_perf_prints(&self, kind: SoftwareKind, value: f64, unit: Option<NameId>) -> Measured {
        let unit = unit.map(|unit| self.recording.name(unit)).unwrap_or_default();
        use SoftwareKind::{CpuClock, TaskClock};
        match (kind, unit) {
            (TaskClock | CpuClock, "ns") => Ok(value / 1e6),
            (TaskClock | CpuClock, "us") => Ok(value / 1e3),
            (TaskClock | CpuClock, "sec" | "s") => Ok(value * 1e3),
            (TaskClock | CpuClock, "" | "msec" | "ms") => Ok(value),
            (TaskClock | CpuClock, other) => {
                let why = format!("{} is recorded in {other}, not as a time", kind.name());
                Err(Missing::NotMeasured(why.into()))
            }
            _ => Ok(value),
        }
    }

    fn software(&self, block: &Block, counts: &Counts) -> Option<Software> {
        let mut values = BTreeMap::new();
        for (kind, row) in &block.software {
            let name = kind.name();
            let value = match row.count {
                Count::Value(value) => self.as_perf_prints(*kind, value, row.unit),
                Count::NotCounted => Err(Missing::NotCounted(name.into())),
                Count::NotSupported => Err(Missing::NotSupported(name.into())),
            };
            values.entry(name.to_owned()).or_insert(value);
        }
        let (scope, interval) = (counts.scope.clone(), counts.interval);
        (!values.is_empty()).then_some(Software { scope, interval, values })
    }
}

/// Key of the blocks that share a wall time: perf prints duration_time for the first CPU or core
/// only.
fn duration_key(block: &Block) -> (usize, u32, Option<String>, Option<Duration>) {
    (block.source, block.run, block.trial.clone(), block.interval.map(|(_, end)| end))
}

/// Wall times in milliseconds, from `duration_time` rows.
fn durations(
    recording: &Recording,
) -> HashMap<(usize, u32, Option<String>, Option<Duration>), f64> {
    let mut durations = HashMap::new();
    for block in recording.blocks.iter().filter(|b| !b.summary) {
        for (kind, row) in &block.software {
            if *kind == SoftwareKind::DurationTime
                && let Count::Value(nanos) = row.count
                && nanos > 0.0
            {
                durations.insert(duration_key(block), nanos / 1e6);
            }
        }
    }
    durations
}
