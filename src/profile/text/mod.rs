//! Branches in text that other tools write. Such text says nothing of where a program was mapped, or only
//! in lines of mappings: the program is given, and is then at its own addresses.
//!
//! | file | concern |
//! |---|---|
//! | `kind` | which tool wrote a text, by its content |
//! | `lines` | the lines of a text, and those that cannot be read |
//! | `script` | `perf script`: a line → what it says |
//! | `entry` | an entry of a branch stack in such a line |
//! | `samples` | `perf script`: lines → samples, mappings |
//! | `lackey` | traces of valgrind's lackey → branches |
//! | `counts` | counted ranges and branches: AutoFDO, llvm-profgen |

mod counts;
mod lackey;
mod lines;
mod samples;
mod script;
#[cfg(test)]
mod tests;

use crate::event::Event;
use crate::files::Program;
use crate::input::Input;
use crate::recording::{About, Stream};
use std::path::Path;
use tma::{Error, Result};

pub use counts::Counts;
pub use samples::UNNAMED;
pub use script::is_sample;

/// Opens a text of `perf script` or lackey, to read its branches one by one.
///
/// # Errors
/// It cannot be read.
pub fn open(path: &Path, kind: Kind, program: Option<Program>) -> Result<Stream> {
    let source = path.display().to_string();
    let input =
        Input::open(path).map_err(|e| Error::failed(format!("cannot read {source}")).because(e))?;
    stream(input, source, kind, program)
}

/// As [`open`], of a text in memory; `source` names it in messages.
///
/// # Errors
/// It has no branches.
pub fn parse(bytes: &[u8], source: &str, kind: Kind) -> Result<Stream> {
    stream(Input::of(bytes), source.to_owned(), kind, None)
}

fn stream(input: Input, source: String, kind: Kind, program: Option<Program>) -> Result<Stream> {
    let text = lines::Text { input, source: source.clone() };
    let mut about = About { source, ..About::default() };
    let named = |name: String| Event { name, ..Event::default() };
    Ok(match kind {
        Kind::Lackey => {
            about.events.push(named(lackey::EVENT.to_owned()));
            Stream { about, records: Box::new(lackey::Trace { text, program }) }
        }
        _ => {
            let found = samples::Samples::open(text, program)?;
            about.events.extend(found.events().iter().cloned().map(named));
            about.notes.extend(found.note());
            Stream { about, records: Box::new(found) }
        }
    })
}

/// Tool or format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `perf script` with branches.
    PerfScript,
    /// `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// Counted ranges and branches: AutoFDO's text, llvm-profgen's unsymbolized profile.
    Counts,
}

/// Lines that may precede one that identifies the format.
const LEAST_KNOWN: usize = 1000;

/// Kind of the text that begins with these bytes; the last line may be incomplete.
pub fn recognise(start: &[u8]) -> Option<Kind> {
    if start.contains(&0) {
        return None;
    }
    let text = String::from_utf8_lossy(start);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(LEAST_KNOWN);
    if counts::begins(lines.clone()) {
        return Some(Kind::Counts);
    }
    lines.find_map(|line| match () {
        () if lackey::is_trace(line) => Some(Kind::Lackey),
        () if script::tells(line) => Some(Kind::PerfScript),
        () => None,
    })
}
