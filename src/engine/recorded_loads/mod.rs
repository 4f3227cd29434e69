//! Recorded samples of loads and stores → loads with their levels and latencies, variables, cache lines that
//! threads share, critical loads.
//!
//! | file | concern |
//! |---|---|
//! | `event` | what an event samples, what that distorts, its samples one by one |
//! | `fields` | operands in the source: `node->next` |
//! | `gather` | a recording → sums; samples are not kept |
//! | `objects` | what samples access: static variables and their members, mappings, the stack |
//! | `executed` | the code; recordings of branches → executions, trips, hard branches |
//! | `rows` | sums → loads and stores of the document |
//! | `lines` | variables and shared cache lines of the document |
//! | `slices` | their slices and critical paths |
//! | `criticality` | critical loads of the document, and access patterns |
//!
//! This file also has misses of the instruction cache with branch stacks → missed lines and prefetch sites, and
//! loads and stores by the member of a structure that their operand is.

mod criticality;
pub(crate) mod event;
pub(crate) mod executed;
pub(crate) mod fields;
pub(crate) mod gather;
mod lines;
mod objects;
pub(crate) mod rows;
mod slices;

use crate::hot::stream;
use crate::notes::{WithoutCode, add_new};
use branches::stacks::{Before, CodeMisses, MissedLine, windows};
use executed::Executed;
use gather::{Of, gather};
use loads::recorded::Operation;
use profile::address_space::{AddressSpaces, ModuleAddress};
use profile::code::Code;
use profile::files::SearchPaths;
use profile::hot::origin;
use profile::module::Module;
use profile::recording::Stream;
use profile::symbols::Symbols;
use report::documents::loads::{CodeMissRow, FieldRow, LevelsRow, LoadRow, Loads, SCHEMA, SiteRow};
use slices::Slices;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tma::text::several;
use tma::{Address, Error, Result};

/// Analyses the load samples of recordings. What branch stacks in any of them show of the same programs
/// (executions, trips) is added. Programs are searched in `search`.
///
/// # Errors
/// A recording cannot be read, or none has samples of loads or stores.
pub fn loads(paths: &[PathBuf], search: &SearchPaths) -> Result<Loads> {
    let mut document = Loads { schema: SCHEMA.to_owned(), ..Loads::default() };
    let mut executed = Executed::default();
    let mut slices = Slices::default();
    let mut first = 0;
    for path in paths {
        let stream = read(path)?;
        executed.add(&stream, first, search)?;
        first += stream.about.events.len();
    }
    first = 0;
    for path in paths {
        let stream = read(path)?;
        let code = add(&mut document, &stream, first, &executed, search)?;
        slices.add(code, &stream.about);
        first += stream.about.events.len();
    }
    if document.events.is_empty() && document.code_misses.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Error::failed(format!("{} has no samples of loads", names.join(", ")))
            .because("no sample of it says what memory it accesses")
            .hint("record with `perf mem record` (Intel: precise loads; AMD: IBS)"));
    }
    without_types(&mut document);
    document.hard_branches = executed.hard;
    document.branches = executed.events;
    slices.fill(&mut document);
    Ok(document)
}

fn read(path: &Path) -> Result<Stream> {
    stream(path, false)?.ok_or_else(|| {
        Error::failed(format!("{} has no samples", tma::files::name(path)))
            .because("it is neither perf.data nor a session with samples")
            .hint("samples of loads are recorded by `perf mem record`")
    })
}

/// Adds a recording whose first event has the number `first`; its code.
fn add(
    document: &mut Loads,
    stream: &Stream,
    first: usize,
    executed: &Executed,
    search: &SearchPaths,
) -> Result<Code> {
    let about = &stream.about;
    let number = document.sources.len();
    document.sources.push(about.source.clone());
    let mut gathered = gather(stream, search)?;
    document.notes.extend(about.notes.iter().chain(&gathered.notes).cloned());
    let targets = executed.targets_in(&gathered.code.modules);
    gathered.code.observe(targets);
    let events = std::mem::take(&mut gathered.events);
    let has = |operation| move |sums: &gather::EventSums| sums.totals.contains_key(&operation);
    for (own, (event, sums)) in about.events.iter().zip(&events).enumerate() {
        if !has(Operation::Load)(sums) && !has(Operation::Store)(sums) {
            continue;
        }
        let of = Of { event, number: first + own, source: &about.source, sums };
        document.events.push(rows::event_row(&of));
        let mut accesses = |operation| rows::access_rows(&of, operation, &mut gathered, executed);
        let (loads, stores) = (accesses(Operation::Load), accesses(Operation::Store));
        document.fields.extend(field_rows(of.number, &loads, &stores));
        document.loads.extend(loads);
        document.stores.extend(stores);
        document.variables.extend(lines::variable_rows(&of, &gathered));
        without_code(document, of.number, &gathered.code.modules, search);
        document.critical.extend(criticality::critical_rows(&of, &mut gathered, executed));
    }
    document.code_misses.extend(code_miss_rows(stream, first, search)?);
    document.lines.extend(lines::line_rows(&mut gathered, number));
    Ok(gathered.code)
}

/// Says of which modules the code is not known.
fn without_code(document: &mut Loads, event: usize, modules: &[Module], search: &SearchPaths) {
    let mut missing = WithoutCode::default();
    let all = document.loads.iter().chain(&document.stores);
    all.filter(|row| row.event == event && row.instruction.is_none())
        .for_each(|row| missing.add(&row.module, row.samples));
    let left_out = "its functions, lines, blocks, loops and variables are left out";
    let notes = missing.notes(modules, search, "sample", "samples", left_out);
    add_new(&mut document.notes, notes);
}

/// Says of which modules operands have no names.
fn without_types(document: &mut Loads) {
    let mut missing: BTreeMap<&str, u64> = BTreeMap::new();
    let all = document.loads.iter().chain(&document.stores);
    for row in all.filter(|row| row.without_dwarf) {
        *missing.entry(&row.module).or_default() += row.samples;
    }
    if missing.is_empty() {
        return;
    }
    let modules: Vec<String> = missing
        .iter()
        .map(|(module, samples)| format!("{module} ({})", several(*samples, "sample")))
        .collect();
    document.notes.push(format!(
        "no debug information (-g) for the code of these samples, so their operands have no names: {}",
        modules.join(", ")
    ));
}

/// Sites listed of a line.
const MOST_SITES: usize = 3;
/// A site comes before at least this share of a line's misses.
const LEAST_COVERAGE: f64 = 0.1;

/// The missed lines of a recording whose events have the numbers from `first` on.
///
/// # Errors
/// It cannot be read.
fn code_miss_rows(stream: &Stream, first: usize, search: &SearchPaths) -> Result<Vec<CodeMissRow>> {
    let events = &stream.about.events;
    let is_wanted: Vec<bool> =
        events.iter().map(|event| CodeMisses::samples_misses(&event.name)).collect();
    if !is_wanted.contains(&true) {
        return Ok(Vec::new());
    }
    let mut spaces = AddressSpaces::of(&stream.about, search.clone());
    let mut all = vec![CodeMisses::default(); events.len()];
    windows(stream, &mut spaces, &mut |event, window| {
        if is_wanted.get(event) == Some(&true) && window.entries > 0 {
            all[event].add(window);
        }
    })?;
    let symbols = Symbols::new(search.clone()).with_origin(origin(&stream.about));
    let mut code = Code::new(symbols, spaces.modules.all);
    let mut rows = Vec::new();
    for (number, found) in all.iter().enumerate() {
        let mut lines: Vec<_> = found.lines.iter().collect();
        lines.sort_by(|(a, x), (b, y)| y.samples.cmp(&x.samples).then(a.cmp(b)));
        rows.extend(lines.into_iter().map(|(line, missed)| CodeMissRow {
            event: first + number,
            name: events[number].name.clone(),
            module: code.path(line.module),
            address: Address(line.address),
            function: code.function(*line).map(|function| function.short),
            samples: missed.samples,
            share: missed.samples as f64 / found.samples.max(1) as f64,
            reached: missed.reached,
            sites: sites(missed, found, &mut code),
        }));
    }
    Ok(rows)
}

fn sites(missed: &MissedLine, all: &CodeMisses, code: &mut Code) -> Vec<SiteRow> {
    let coverage = |before: &Before| before.misses as f64 / missed.samples.max(1) as f64;
    let mut sites: Vec<(&ModuleAddress, &Before)> =
        missed.before.iter().filter(|(_, before)| coverage(before) >= LEAST_COVERAGE).collect();
    // The nearest of those before as many misses: what comes sooner stays in the cache for sure.
    sites.sort_by_key(|(place, before)| (std::cmp::Reverse(before.misses), before.cycles, **place));
    sites.truncate(MOST_SITES);
    let row = |(place, before): (&ModuleAddress, &Before)| SiteRow {
        module: code.path(place.module),
        address: Address(place.address),
        function: code.function(*place).map(|function| function.short),
        coverage: coverage(before),
        distance: before.cycles as f64 / before.misses.max(1) as f64,
        fan_out: all.fan_out(*place),
    };
    sites.into_iter().map(row).collect()
}

/// The members of an event's loads and stores, those with the largest share first.
fn field_rows(event: usize, loads: &[LoadRow], stores: &[LoadRow]) -> Vec<FieldRow> {
    let mut all: BTreeMap<(&str, u64, &str), Member> = BTreeMap::new();
    for (row, is_load) in
        loads.iter().map(|row| (row, true)).chain(stores.iter().map(|row| (row, false)))
    {
        let (Some(of), Some(member), Some(offset)) = (&row.of, &row.member, row.offset) else {
            continue;
        };
        let is_main = is_load || loads.is_empty();
        all.entry((of, offset, member)).or_default().add(row, is_load, is_main);
    }
    let mut rows: Vec<FieldRow> = all
        .into_iter()
        .map(|((of, offset, member), found)| FieldRow {
            event,
            of: of.to_owned(),
            member: member.to_owned(),
            offset,
            latency_mean: (found.timed > 0.0).then(|| found.cycles / found.timed),
            ..found.row
        })
        .collect();
    rows.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.offset.cmp(&b.offset)));
    rows
}

#[derive(Default)]
struct Member {
    row: FieldRow,
    /// Samples with a latency, and its sum.
    timed: f64,
    cycles: f64,
}

impl Member {
    fn add(&mut self, row: &LoadRow, is_load: bool, is_main: bool) {
        if is_load {
            self.row.loads += row.samples;
        } else {
            self.row.stores += row.samples;
        }
        if !is_main {
            return;
        }
        self.row.share += row.share;
        add_levels(&mut self.row.levels, &row.levels);
        if let Some(mean) = row.latency_mean {
            self.timed += row.samples as f64;
            self.cycles += mean * row.samples as f64;
        }
    }
}

fn add_levels(to: &mut LevelsRow, own: &LevelsRow) {
    to.lfb += own.lfb;
    to.l1 += own.l1;
    to.l2 += own.l2;
    to.l3 += own.l3;
    to.ram += own.ram;
    to.remote_ram += own.remote_ram;
    to.remote_cache += own.remote_cache;
    to.other += own.other;
}
