//! Recorded samples of loads and stores → loads with their levels and latencies, variables, cache lines that
//! threads share, critical loads.
//!
//! | file | concern |
//! |---|---|
//! | `event` | what an event samples, and what that distorts |
//! | `event_of` | an event with its sums |
//! | `access` | the samples of a recording as accesses to memory |
//! | `fields` | operands in the source: `node->next` |
//! | `gather` | a recording → sums; samples are not kept |
//! | `objects` | what samples access: static variables and their members, mappings, the stack |
//! | `executed` | recordings of branches → executions, trips, hard branches |
//! | `patterns` | access patterns, from the code |
//! | `code_misses` | misses of the instruction cache, and where the code could be prefetched |
//! | `code` | the code around sampled instructions |
//! | `rows`, `variables` | sums → loads, stores and variables of the document |
//! | `members` | members of structures, by the operands of loads and stores |
//! | `lines` | shared cache lines of the document |
//! | `slices` | their slices and critical paths |
//! | `criticality` | critical loads of the document |

pub(crate) mod access;
pub(crate) mod code;
mod code_misses;
mod criticality;
pub(crate) mod event;
pub(crate) mod event_of;
pub(crate) mod executed;
pub(crate) mod fields;
pub(crate) mod gather;
mod lines;
mod members;
mod objects;
mod patterns;
pub(crate) mod rows;
mod slices;
mod variables;

use crate::hot::recording::stream;
use crate::missing_code::{WithoutCode, add_new};
use code::Code;
use event_of::Of;
use executed::Executed;
use gather::gather;
use loads::recorded::Operation;
use profile::files::SearchPaths;
use profile::module::Module;
use profile::recording::Stream;
use report::documents::loads::{Loads, SCHEMA};
use slices::Slices;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

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
        Error::failed(format!("{} has no samples", path.display()))
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
        document.fields.extend(members::field_rows(of.number, &loads, &stores));
        document.loads.extend(loads);
        document.stores.extend(stores);
        document.variables.extend(variables::variable_rows(&of, &gathered));
        without_code(document, of.number, &gathered.code.modules, search);
        document.critical.extend(criticality::critical_rows(&of, &mut gathered, executed));
    }
    document.code_misses.extend(code_misses::rows(stream, first, search)?);
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
        .map(|(module, samples)| format!("{module} ({})", plural(*samples)))
        .collect();
    document.notes.push(format!(
        "no debug information (-g) for the code of these samples, so their operands have no names: {}",
        modules.join(", ")
    ));
}

fn plural(samples: u64) -> String {
    if samples == 1 { "1 sample".to_owned() } else { format!("{samples} samples") }
}
