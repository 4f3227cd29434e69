//! `tdtool`, `tdtool FILE`, `tdtool A B`, `tdtool -- CMD` on a terminal: the interactive drill-down.

use super::arguments::Arguments;
use crate::settings::{Next, Samples, Subject};
use report::documents::count::Count;
use std::path::Path;
use tma::{Error, Result};

/// Subject that the drill-down opens on.
///
/// # Errors
/// Both a file and a command are given; the file cannot be opened.
pub fn open(arguments: Arguments) -> Result<Next> {
    let search = arguments.samples.search.paths()?;
    let counts = arguments.counts.as_deref().map(Count::read).transpose()?.map(Box::new);
    let samples = Samples { threads: arguments.samples.thread, search, counts };
    let subject = match (arguments.file, arguments.run.is_empty()) {
        (Some(_), false) => {
            return Err(Error::usage("a recording and a command exclude each other")
                .hint("leave out the file or the command"));
        }
        (Some(_), _) | (_, false) if arguments.pid.is_some() => {
            return Err(Error::usage("-p excludes a recording and a command")
                .hint("leave out -p, or what is to be opened or run"));
        }
        (Some(file), true) => {
            readable(&file)?;
            if let Some(other) = arguments.against {
                readable(&other)?;
                let settings = Box::new(arguments.global.settings()?);
                return Ok(Next::DrillDown(settings, Subject::Pair(file, other, samples)));
            }
            Subject::File(file, samples)
        }
        (None, false) => Subject::Command(arguments.run, samples),
        (None, true) => match arguments.pid {
            Some(pid) => Subject::Process(pid, samples),
            None => Subject::System,
        },
    };
    Ok(Next::DrillDown(Box::new(arguments.global.settings()?), subject))
}

/// Whether there is a file to open, checked before the screen changes.
fn readable(file: &Path) -> Result<()> {
    let error = match std::fs::metadata(file) {
        Ok(meta) if meta.is_dir() && !file.join("data").is_file() => {
            Error::failed(format!("{} is a directory", file.display()))
                .hint("give a session, a perf.data file, or recorded counts")
        }
        Ok(_) => return Ok(()),
        Err(e) => Error::failed(format!("cannot open {}", file.display()))
            .because(e)
            .hint("`tdtool --help` lists the commands"),
    };
    Err(error)
}
