//! Traces of `valgrind --tool=lackey --trace-mem=yes`: every instruction in order, with the addresses of
//! its loads and stores. A branch was taken where the next instruction does not follow the last one.
//!
//! Lackey counts one instruction for each repetition of a string instruction (`rep`) and does not name
//! threads.

use super::lines::{Text, hex};
use crate::files::Program;
use crate::record::Record;
use crate::recording::Records;
use crate::sample::{Branch, Recorded, Sample};
use tma::Result;

/// Name of the event.
pub const EVENT: &str = "every taken branch (lackey)";
/// Branches in a piece of the trace.
const PIECE: usize = 4096;
/// Valgrind loads what is position-independent there (`VKI` of 3.19: the lowest address it maps).
const BASE: u64 = 0x10_8000;

/// Whether a line is one of the trace.
pub fn is_trace(line: &str) -> bool {
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
pub struct Trace {
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
