//! Branches in text that other tools write. Such text says where a program was mapped in lines of mappings or not
//! at all: the program is given, and is then at its own addresses.
//!
//! | file | concern |
//! |---|---|
//! | `counts` | counted ranges and branches |
//! | `lines` | the lines of a text; an entry of a branch stack |
//! | `samples`, `script` | the text of `perf script`, and one line of it |
//!
//! Traces of `valgrind --tool=lackey --trace-mem=yes` have every instruction in order, with the addresses of its
//! loads and stores. A branch was taken where the next instruction does not follow the last one. Lackey counts one
//! instruction for each repetition of a string instruction (`rep`) and does not name threads.

mod counts;
mod lines;
mod samples;
mod script;
#[cfg(test)]
mod tests;

use crate::event::Event;
use crate::files::Program;
use crate::input::Input;
use crate::record::Record;
use crate::recording::{About, Records, Stream};
use crate::sample::{Branch, Recorded, Sample};
use lines::{Text, hex};
use std::path::Path;
use tma::Result;

pub use counts::Counts;
pub use samples::UNNAMED;
pub use script::is_sample;

/// Opens a text of `perf script` or lackey, to read its branches one by one.
pub fn open(path: &Path, kind: Kind, program: Option<Program>) -> Result<Stream> {
    let source = path.display().to_string();
    let input = Input::open(path).map_err(|e| tma::error::unreadable(path, &e))?;
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
            about.events.push(named(EVENT.to_owned()));
            Stream { about, records: Box::new(Trace { text, program }) }
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
        () if is_trace(line) => Some(Kind::Lackey),
        () if script::tells(line) => Some(Kind::PerfScript),
        () => None,
    })
}

/// Name of the event.
const EVENT: &str = "every taken branch (lackey)";
/// Branches in a piece of the trace.
const PIECE: usize = 4096;
/// Valgrind loads what is position-independent there (`VKI` of 3.19: the lowest address it maps).
const BASE: u64 = 0x10_8000;

/// Whether a line is one of the trace.
fn is_trace(line: &str) -> bool {
    read(line).is_some()
}

/// A line: its letter, address and size.
fn read(line: &str) -> Option<(u8, u64, u64)> {
    let bytes = line.as_bytes();
    let letter = match bytes {
        [b'I', b' ', b' ', ..] => b'I',
        [b' ', letter @ (b'L' | b'S' | b'M'), b' ', ..] => *letter,
        _ => return None,
    };
    let (address, size) = line.get(3..)?.split_once(',')?;
    Some((letter, hex(address)?, size.parse().ok()?))
}

/// A trace.
#[derive(Debug)]
struct Trace {
    pub text: Text,
    pub program: Option<Program>,
}

impl Records for Trace {
    fn each(&self, visit: &mut dyn FnMut(Record)) -> Result<Vec<String>> {
        if let Some(program) = &self.program {
            let base = if program.is_relocatable() { BASE } else { 0 };
            for mapping in program.mappings(0, base) {
                visit(Record::Map { time: None, mapping: Box::new(mapping) });
            }
        }
        let mut last: Option<(u64, u64)> = None;
        let mut piece = Vec::with_capacity(PIECE);
        let mut recorded = Recorded::TraceBegins;
        let mut pass_on = |piece: &mut Vec<Branch>, next: Recorded| {
            if !piece.is_empty() {
                piece.reverse();
                let mut sample = Sample::of_branches(std::mem::take(piece), recorded);
                sample.pid = Some(0);
                visit(Record::Sample { event: 0, sample });
            }
            recorded = next;
        };
        let notes = self.text.each(&mut |line| {
            let Some((letter, address, size)) = read(line) else {
                let is_message =
                    line.is_empty() || line.starts_with("==") || line.starts_with("--");
                if !is_message {
                    // It may have been an instruction.
                    last = None;
                    pass_on(&mut piece, Recorded::TraceBegins);
                }
                return is_message;
            };
            if letter == b'I' {
                let is_taken = |(from, length): &(u64, u64)| {
                    from.wrapping_add(*length) != address && *from != address
                };
                if let Some((from, _)) = last.filter(is_taken) {
                    piece.push(Branch { from, to: address, ..Branch::default() });
                }
                last = Some((address, size));
                if piece.len() == PIECE {
                    pass_on(&mut piece, Recorded::TraceContinues);
                }
            }
            true
        })?;
        pass_on(&mut piece, Recorded::TraceBegins);
        Ok(notes)
    }
}
