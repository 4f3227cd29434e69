//! Recorded branches → edges, ranges, blocks, loops, calls: recognises the kind of a file by its content, and
//! analyses it. `rows` has the rows of the document.

pub mod rows;

use crate::hot::stream;
use crate::notes::add_new;
use branches::stacks::{Analysis, analyse, of_counts};
use profile::files::{Program, SearchPaths};
use profile::module::{Module, ModuleKind};
use profile::recording::Stream;
use profile::text::{self, Counts, Kind};
use report::documents::branches::{Branches, SCHEMA};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Analyses the branches of recordings, one after the other: events of different files are different
/// events. Of one event by its number over all files, or of all that have branches.
///
/// # Errors
/// One cannot be read, or none has branches.
pub fn branches(files: &[PathBuf], event: Option<usize>, search: &SearchPaths) -> Result<Branches> {
    let mut document = Branches { schema: SCHEMA.to_owned(), ..Branches::default() };
    let mut sources = Vec::new();
    let mut first = 0;
    for path in files {
        // A number of another file is no number of this one.
        let wanted = event.map(|number| number.checked_sub(first).unwrap_or(usize::MAX));
        let found = read(path, wanted, search)?;
        sources.push(found.source.clone());
        add_new(&mut document.notes, found.notes);
        for (number, name, analysis) in found.events {
            let event =
                rows::EventOf { source: &found.source, name: &name, number: first + number };
            rows::add(&mut document, event, analysis, search);
        }
        first += found.number;
    }
    document.source = sources.join(", ");
    match (document.events.is_empty(), event) {
        (true, Some(number)) => Err(no_event(number, first, files, search)?),
        (true, None) => Err(Error::failed(format!("{} has no branch stacks", document.source))
            .because("no sample of it has the last branches")
            .hint("record with `perf record -b`, on a processor with LBR (Intel, AMD Zen 4 and later)")),
        (false, _) => Ok(document),
    }
}

/// Why none of `of` events has this number and branches.
///
/// # Errors
/// None has branches.
fn no_event(number: usize, of: usize, files: &[PathBuf], search: &SearchPaths) -> Result<Error> {
    let all = branches(files, None, search)?;
    let with: Vec<String> =
        all.events.iter().map(|row| format!("{} {}", row.event, row.name)).collect();
    let message = match number < of {
        true => format!("event {number} of {} has no branch stacks", all.source),
        false => format!("{} has no event {number}", all.source),
    };
    Ok(Error::failed(message)
        .because(format!("events with branch stacks: {}", with.join(", ")))
        .hint("choose one of these with --event-number"))
}

/// The program of a module of the document.
///
/// # Errors
/// It is not found, or is another one.
pub fn program(document: &Branches, module: &str, search: &SearchPaths) -> Result<Program> {
    let row = document.modules.iter().find(|row| row.path == module);
    let id = row.and_then(|row| row.build_id.as_deref()).map(|id| {
        let digit = |at: usize| u8::from_str_radix(id.get(at..at + 2).unwrap_or_default(), 16);
        (0..id.len()).step_by(2).filter_map(|at| digit(at).ok()).collect()
    });
    let module = Module {
        path: module.to_owned(),
        kind: ModuleKind::File,
        build_id: id,
        ..Module::default()
    };
    Program::of(&module, search)
}

/// The module of this path or file name in the document; that with most branches if none is given.
///
/// # Errors
/// It has no branch of it.
pub fn module(document: &Branches, named: Option<&str>) -> Result<String> {
    let mut all = document.edges.iter().map(|edge| edge.module.as_str());
    let found = match named {
        None => all.next(),
        Some(name) => all.find(|own| *own == name || own.rsplit('/').next() == Some(name)),
    };
    found.map(str::to_owned).ok_or_else(|| {
        Error::failed("no branch of that module was recorded")
            .hint("`tdtool branches --format json` lists the modules of all branches")
    })
}

/// Bytes of a text by which its tool is known.
const START: u64 = 1 << 16;

/// The analysis of a file.
pub struct Found {
    /// The file.
    pub source: String,
    /// Limits that a report must state.
    pub notes: Vec<String>,
    /// How many events it has, also those without branches.
    pub number: usize,
    /// Number, name and analysis of the events with branches.
    pub events: Vec<(usize, String, Analysis)>,
}

/// Reads a file: perf.data, a session, or a text of another tool.
///
/// # Errors
/// It cannot be read, or is nothing known.
pub fn read(path: &Path, event: Option<usize>, search: &SearchPaths) -> Result<Found> {
    if let Some(stream) = stream(path, false)? {
        return analysed(&stream, event, search);
    }
    let program = search.programs.first().map(|path| Program::read(path)).transpose()?;
    match kind(path)? {
        Some(Kind::Counts) => {
            let program = program.ok_or_else(|| {
                Error::failed(format!("{} has counts of an unknown program", tma::files::name(path)))
                    .because("it has addresses only")
                    .hint("name the program with --binary FILE")
            })?;
            counted(path, event, &program, search)
        }
        Some(kind) => {
            let is_unknown = program.is_none();
            let mut found = analysed(&text::open(path, kind, program)?, event, search)?;
            if kind == Kind::Lackey && is_unknown {
                found.notes.push(
                    "the trace does not name the program: --binary FILE gives the code of its branches"
                        .into(),
                );
            }
            Ok(found)
        }
        None => Err(Error::failed(format!("{} has no samples", tma::files::name(path)))
            .because("it is no perf.data, session, text of `perf script`, lackey trace or counts of AutoFDO or llvm-profgen")
            .hint("branch stacks are recorded by `perf record -b`")),
    }
}

fn kind(path: &Path) -> Result<Option<Kind>> {
    let mut start = Vec::new();
    profile::kept::open(path)
        .and_then(|file| file.take(START).read_to_end(&mut start))
        .map_err(|e| tma::error::unreadable(path, &e))?;
    Ok(text::recognise(&start))
}

fn analysed(stream: &Stream, event: Option<usize>, search: &SearchPaths) -> Result<Found> {
    let (all, of_records) = analyse(stream, event, search)?;
    let mut notes = stream.about.notes.clone();
    notes.extend(of_records);
    let named = all.into_iter().zip(&stream.about.events).enumerate();
    let events =
        named.filter_map(|(number, (found, event))| Some((number, event.name.clone(), found?)));
    Ok(Found {
        source: stream.about.source.clone(),
        notes,
        number: stream.about.events.len(),
        events: events.collect(),
    })
}

fn counted(
    path: &Path,
    event: Option<usize>,
    program: &Program,
    search: &SearchPaths,
) -> Result<Found> {
    let counts = Counts::read(path, program)?;
    let tool = if counts.is_autofdo { "AutoFDO" } else { "llvm-profgen" };
    let found = of_counts(&counts, program, search);
    let events = event
        .is_none_or(|wanted| wanted == 0)
        .then(|| (0, format!("branches counted by {tool}"), found));
    Ok(Found {
        source: path.display().to_string(),
        notes: Vec::new(),
        number: 1,
        events: events.into_iter().collect(),
    })
}
