//! Writes jumps over the code of a process, checks them, and removes them.

use super::unprobed::Unprobed;
use crate::plan::{JUMP, PAGE, PREFIX};
use crate::process::{Mapping, Memory};
use std::ops::Range;

/// Longest gap between functions that is read and written with them.
const NEAR: u64 = 64;

/// One jump.
#[derive(Debug)]
pub struct Jump {
    pub at: u64,
    pub bytes: Vec<u8>,
    /// Its target.
    pub to: u64,
}

/// Condition of the code of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// As it was patched.
    Patched,
    /// The program has changed it.
    Changed,
    /// The program has made it writable: it may have changed it between the jumps.
    Writable,
    /// It is not mapped any more.
    Unmapped,
    /// The process has ended.
    Gone,
}

/// Code with jumps written over it.
#[derive(Debug)]
pub struct Patched {
    /// Jumps in order of address.
    jumps: Vec<Jump>,
    /// Original bytes of the functions, in order of address.
    before: Vec<(u64, Vec<u8>)>,
}

impl Patched {
    /// Jumps in functions with the original bytes `before`, by address.
    ///
    /// # Errors
    /// A jump is outside of the functions.
    pub fn new(mut before: Vec<(u64, Vec<u8>)>, mut jumps: Vec<Jump>) -> Result<Self, Unprobed> {
        before.sort_by_key(|(start, _)| *start);
        jumps.sort_by_key(|jump| jump.at);
        let patched = Self { jumps, before };
        match patched.jumps.iter().all(|jump| patched.original(jump).is_some()) {
            true => Ok(patched),
            false => Err(Unprobed::Outside),
        }
    }

    /// Whether one of the functions is writable in these mappings.
    pub fn is_writable(&self, mappings: &[Mapping]) -> bool {
        mappings.iter().filter(|mapping| mapping.is_writable()).any(|mapping| {
            let mut all = self.before.iter();
            all.any(|(start, code)| {
                *start < mapping.end && mapping.start < start + code.len() as u64
            })
        })
    }

    /// Whether an address is in one of the functions.
    pub fn has(&self, address: u64) -> bool {
        let next = self.before.partition_point(|(start, _)| *start <= address);
        let last = next.checked_sub(1).and_then(|last| self.before.get(last));
        last.is_some_and(|(start, code)| address - start < code.len() as u64)
    }

    /// Whether the code is unchanged, with `read` giving so many bytes from an address on.
    pub fn is_before(&self, read: impl Fn(u64, usize) -> Vec<u8>) -> bool {
        self.spans().all(|span| {
            let now = read(span.start, span.length());
            let is_same = |(start, before): &(u64, Vec<u8>)| {
                let at = (start - span.start) as usize;
                now.get(at..at + before.len()) == Some(before)
            };
            span.functions.iter().all(is_same)
        })
    }

    /// Groups of close functions, for one read or write each.
    fn spans(&self) -> impl Iterator<Item = Span<'_>> {
        let is_near = |one: &(u64, Vec<u8>), next: &(u64, Vec<u8>)| {
            next.0.saturating_sub(one.0 + one.1.len() as u64) < NEAR
        };
        self.before.chunk_by(is_near).map(|functions| self.span(functions))
    }

    fn span<'a>(&'a self, functions: &'a [(u64, Vec<u8>)]) -> Span<'a> {
        let start = functions.first().map_or(0, |(start, _)| *start);
        let end = functions.last().map_or(start, |(at, bytes)| at + bytes.len() as u64);
        let from = self.jumps.partition_point(|jump| jump.at < start);
        let to = self.jumps.partition_point(|jump| jump.at < end);
        Span { start, end, functions, jumps: &self.jumps[from..to] }
    }

    /// Whether an address is inside an instruction replaced by a jump, after its first byte.
    pub fn is_inside(&self, address: u64) -> bool {
        let index = self.jumps.partition_point(|jump| jump.at < address).wrapping_sub(1);
        let jump = self.jumps.get(index);
        jump.is_some_and(|jump| address < jump.at + jump.bytes.len() as u64)
    }

    /// Number of jumps.
    pub fn jumps(&self) -> usize {
        self.jumps.len()
    }

    /// The original bytes in the place of a jump.
    fn original(&self, jump: &Jump) -> Option<&[u8]> {
        let index = self.before.partition_point(|(start, _)| *start <= jump.at).wrapping_sub(1);
        let (start, bytes) = self.before.get(index)?;
        let at = (jump.at - start) as usize;
        bytes.get(at..at + jump.bytes.len())
    }

    /// Patches the code; restores it if a jump does not lead to its trampoline.
    pub fn write(&self, memory: &Memory) -> Result<(), Unprobed> {
        let mut failed = None;
        for span in self.spans().filter(|span| !span.jumps.is_empty()) {
            let mut bytes = memory.read(span.start, span.length());
            if bytes.len() < span.length() {
                failed = Some(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
                break;
            }
            for jump in span.jumps {
                bytes[span.inside(jump)].copy_from_slice(&jump.bytes);
            }
            failed = failed.or(span.write(memory, &bytes).err());
        }
        if failed.is_none() && self.leads(memory) {
            return Ok(());
        }
        for (start, bytes) in &self.before {
            let _ = memory.write_all(*start, bytes);
        }
        Err(match failed {
            Some(error) => Unprobed::UnwrittenCode(error.into()),
            None => Unprobed::Astray,
        })
    }

    /// Whether every jump in memory leads to its trampoline.
    fn leads(&self, memory: &Memory) -> bool {
        self.spans().filter(|span| !span.jumps.is_empty()).all(|span| {
            let now = memory.read(span.start, span.length());
            span.jumps.iter().all(|jump| {
                let prefixes = jump.bytes.iter().take_while(|byte| **byte == PREFIX).count();
                let at = span.inside(jump).start + prefixes + 1;
                let distance = now.get(at..at + 4).and_then(|word| word.try_into().ok());
                let next = jump.at + prefixes as u64 + JUMP;
                distance.is_some_and(|word| {
                    next.wrapping_add_signed(i32::from_le_bytes(word).into()) == jump.to
                })
            })
        })
    }

    /// Condition of the code.
    pub fn condition(&self, memory: &Memory) -> Condition {
        self.each(memory, &mut |_, _| ())
    }

    /// Restores the code wherever a jump still is, in a stopped process; the condition before.
    pub fn restore(&self, memory: &Memory) -> Condition {
        self.each(memory, &mut |span, now| {
            let mut after = now.to_vec();
            for jump in span.jumps {
                let range = span.inside(jump);
                let before = self.original(jump).unwrap_or_default();
                if now.get(range.clone()) == Some(&jump.bytes[..]) {
                    after[range].copy_from_slice(before);
                }
            }
            if after != now {
                // The process may have been killed.
                let _ = span.write(memory, &after);
            }
        })
    }

    /// Whether all jumps are gone.
    pub fn is_gone(&self, memory: &Memory) -> bool {
        let mut is_gone = true;
        self.each(memory, &mut |span, now| {
            is_gone &=
                span.jumps.iter().all(|jump| now.get(span.inside(jump)) != Some(&jump.bytes));
        });
        is_gone
    }

    /// Calls `with` for all code with jumps, as it is now; the condition of the first part that is
    /// not as patched.
    fn each(&self, memory: &Memory, with: &mut dyn FnMut(&Span<'_>, &[u8])) -> Condition {
        let mut found = Condition::Patched;
        let read = |span: &Span<'_>| memory.read(span.start, span.length());
        let mut one = |span: &Span<'_>, now: &[u8]| {
            with(span, now);
            if found == Condition::Patched {
                found = span.condition(memory, now);
            }
        };
        for span in self.spans().filter(|span| !span.jumps.is_empty()) {
            let now = read(&span);
            if now.len() == span.length() {
                one(&span, &now);
                continue;
            }
            // A part is unmapped.
            let alone = span.functions.chunks(1).map(|function| self.span(function));
            alone.filter(|f| !f.jumps.is_empty()).for_each(|f| one(&f, &read(&f)));
        }
        found
    }
}

/// Close functions, with the jumps in them.
struct Span<'a> {
    start: u64,
    end: u64,
    functions: &'a [(u64, Vec<u8>)],
    jumps: &'a [Jump],
}

impl Span<'_> {
    fn length(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Offsets of a jump in the span.
    fn inside(&self, jump: &Jump) -> Range<usize> {
        let at = (jump.at - self.start) as usize;
        at..at + jump.bytes.len()
    }

    /// Writes its bytes, except for pages without a jump, which the process may share with others.
    fn write(&self, memory: &Memory, bytes: &[u8]) -> std::io::Result<()> {
        let is_near = |one: &Jump, next: &Jump| next.at / PAGE <= one.at / PAGE + 1;
        self.jumps.chunk_by(is_near).try_for_each(|run| {
            let from = self.inside(&run[0]).start;
            let to = self.inside(&run[run.len() - 1]).end.min(bytes.len());
            match from < to {
                true => memory.write_all(self.start + from as u64, &bytes[from..to]),
                false => Ok(()),
            }
        })
    }

    /// Condition of its code with the bytes `now`.
    fn condition(&self, memory: &Memory, now: &[u8]) -> Condition {
        if now.len() != self.length() {
            return match memory.holds(self.start, self.length()) {
                None => Condition::Gone,
                Some(_) => Condition::Unmapped,
            };
        }
        match self.jumps.iter().all(|jump| now[self.inside(jump)] == jump.bytes) {
            true => Condition::Patched,
            false => Condition::Changed,
        }
    }
}
