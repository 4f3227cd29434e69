//! The kind of a file, by its content, and its analysis.

use crate::hot::recording::stream;
use branches::stacks::{Analysis, analyse, of_counts};
use profile::files::{Program, SearchPaths};
use profile::recording::Stream;
use profile::text::{self, Counts, Kind};
use std::io::Read as _;
use std::path::Path;
use tma::{Error, Result};

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
                Error::failed(format!("{} has counts of an unknown program", path.display()))
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
        None => Err(Error::failed(format!("{} has no samples", path.display()))
            .because("it is no perf.data, session, text of `perf script`, lackey trace or counts of AutoFDO or llvm-profgen")
            .hint("branch stacks are recorded by `perf record -b`")),
    }
}

fn kind(path: &Path) -> Result<Option<Kind>> {
    let mut start = Vec::new();
    profile::kept::open(path)
        .and_then(|file| file.take(START).read_to_end(&mut start))
        .map_err(|e| Error::failed(format!("cannot read {}", path.display())).because(e))?;
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
