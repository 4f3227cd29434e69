//! What is written over the code of a process, and how it is taken back.

use super::unprobed::Unprobed;
use crate::plan::PAGE;
use crate::process::{Mapping, Memory};
use std::ops::Range;

/// Bytes between functions that are read and written with them: they lie on pages of the functions.
const NEAR: u64 = 64;

/// One jump.
#[derive(Debug)]
pub struct Jump {
    pub at: u64,
    pub bytes: Vec<u8>,
    /// Where it leads.
    pub to: u64,
}

/// How the code of a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// As it was patched.
    Patched,
    /// The program has changed it.
    Changed,
    /// The program has made it writable: it may have changed it where no jump is.
    Writable,
    /// It is not mapped any more.
    Unmapped,
    /// The process has ended.
    Gone,
}

/// Code with jumps written over it.
#[derive(Debug)]
pub struct Patched {
    /// In order of address.
    jumps: Vec<Jump>,
    /// The functions as they were, in order of address.
    before: Vec<(u64, Vec<u8>)>,
}

impl Patched {
    /// Of functions that are `before` so, by address.
    ///
    /// # Errors
    /// A jump lies elsewhere.
    pub fn new(mut before: Vec<(u64, Vec<u8>)>, mut jumps: Vec<Jump>) -> Result<Self, Unprobed> {
        before.sort_by_key(|(start, _)| *start);
        jumps.sort_by_key(|jump| jump.at);
        let patched = Self { jumps, before };
        match patched.jumps.iter().all(|jump| patched.original(jump).is_some()) {
            true => Ok(patched),
            false => Err(Unprobed::Outside),
        }
    }

    /// Whether one of the functions can be written in a process with these mappings.
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

    /// Whether the code is as it was, by a function that reads so many bytes from an address on.
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

    /// The functions in runs with little between them: one read or write for many.
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

    /// Whether an address is inside an instruction that is replaced by a jump, and not its first byte.
    pub fn is_inside(&self, address: u64) -> bool {
        let index = self.jumps.partition_point(|jump| jump.at < address).wrapping_sub(1);
        let jump = self.jumps.get(index);
        jump.is_some_and(|jump| address < jump.at + jump.bytes.len() as u64)
    }

    /// The jumps.
    pub fn jumps(&self) -> &[Jump] {
        &self.jumps
    }

    /// What was in the place of a jump.
    fn original(&self, jump: &Jump) -> Option<&[u8]> {
        let index = self.before.partition_point(|(start, _)| *start <= jump.at).wrapping_sub(1);
        let (start, bytes) = self.before.get(index)?;
        let at = (jump.at - start) as usize;
        bytes.get(at..at + jump.bytes.len())
    }

    /// Patches the code; takes that back if not every jump leads where it is to.
    ///
    /// # Errors
    /// The reason why the code is as it was.
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

    /// Whether every jump leads to its trampoline, as the bytes in memory say.
    fn leads(&self, memory: &Memory) -> bool {
        self.spans().filter(|span| !span.jumps.is_empty()).all(|span| {
            let now = memory.read(span.start, span.length());
            span.jumps.iter().all(|jump| {
                let at = span.inside(jump).start + 1;
                let distance = now.get(at..at + 4).and_then(|word| word.try_into().ok());
                let to = distance
                    .map(|word| (jump.at + 5).wrapping_add_signed(i32::from_le_bytes(word).into()));
                to == Some(jump.to)
            })
        })
    }

    /// How the code is.
    pub fn condition(&self, memory: &Memory) -> Condition {
        self.each(memory, &mut |_, _| ())
    }

    /// Puts the code back as it was wherever a jump still is; how it was before that. The process is
    /// stopped.
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

    /// Whether none of the jumps is there any more.
    pub fn is_gone(&self, memory: &Memory) -> bool {
        let mut is_gone = true;
        self.each(memory, &mut |span, now| {
            is_gone &=
                span.jumps.iter().all(|jump| now.get(span.inside(jump)) != Some(&jump.bytes));
        });
        is_gone
    }

    /// Calls a function with all code that has jumps, as it is now. How it is: of the first that is not as it was
    /// patched.
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
            // A part is not mapped any more.
            let alone = span.functions.chunks(1).map(|function| self.span(function));
            alone.filter(|f| !f.jumps.is_empty()).for_each(|f| one(&f, &read(&f)));
        }
        found
    }
}

/// Functions one after another, with the jumps in them.
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

    /// Where the bytes of a jump are among those of the span.
    fn inside(&self, jump: &Jump) -> Range<usize> {
        let at = (jump.at - self.start) as usize;
        at..at + jump.bytes.len()
    }

    /// Writes its bytes, but for pages without a jump, which the process may share with others.
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

    /// How its code is, if it is `now` so.
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
