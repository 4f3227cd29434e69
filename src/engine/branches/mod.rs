//! Recorded branches → edges, ranges, blocks, loops, calls.
//!
//! | file | concern |
//! |---|---|
//! | `input` | what a file is, and its analysis |
//! | `rows` | an analysis → rows of the document |
//! | `calls` | edges → calls between functions, targets of indirect branches |
//! | `hard` | edges and blocks → branches that are hard to predict |

mod calls;
pub mod hard;
mod input;
mod rows;

use crate::missing_code::add_new;
use profile::files::{Program, SearchPaths};
use profile::module::{Module, ModuleKind};
use report::documents::branches::{Branches, SCHEMA};
use std::path::PathBuf;
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
        let found = input::read(path, wanted, search)?;
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
