//! The entries of a jitdump. Whatever a damaged one claims, as much memory is taken as one entry has bytes.

use crate::files::Unreadable;
use crate::input::Input;
use tma::files::LONGEST_PROGRAM;

/// `JITHEADER_MAGIC` and the size of the header's known part.
const MAGIC: u32 = 0x4a69_5444;
const HEADER: u64 = 40;
/// Bytes before each entry's own: kind, size, time.
const PREFIX: usize = 16;
/// Kinds: `JIT_CODE_LOAD`, `JIT_CODE_MOVE`, `JIT_CODE_DEBUG_INFO`.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const DEBUG: u32 = 2;
/// Where the name of loaded code and the lines of a debug entry begin.
const NAME_AT: usize = 56;
const LINES_AT: usize = 32;
/// Longest name of a function; code with a longer one is skipped.
const LONGEST_NAME: u64 = 1 << 16;
/// Largest entry with lines; larger ones are skipped.
const MOST_LINES: u64 = 16 << 20;
/// Most entries that are read.
const MOST: usize = 1 << 22;

/// An entry of a jitdump. Times are nanoseconds.
#[derive(Debug)]
pub(super) enum Entry<'a> {
    /// Code was written to memory: its address and size there, and where in the file it is.
    Load { time: u64, start: u64, size: u64, code: u64, name: &'a [u8] },
    /// The code at an address is elsewhere in memory now.
    Move { time: u64, from: u64, start: u64, size: u64 },
    /// The source lines of code that is loaded next.
    Lines { start: u64, lines: &'a [u8] },
}

/// The head of the file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Header {
    /// `e_machine` of the code.
    pub machine: u16,
    /// Whether times are nanoseconds of `CLOCK_MONOTONIC`, not ticks of a counter.
    pub is_monotonic: bool,
}

/// Reads the header.
///
/// # Errors
/// Why it is no jitdump that can be read.
pub(super) fn header(input: &Input) -> Result<(Header, u64), Unreadable> {
    if input.length() > LONGEST_PROGRAM {
        return Err(Unreadable::Gigabytes(LONGEST_PROGRAM >> 30));
    }
    let head = input.part(0..HEADER)?;
    let word = |at| half(&head, at).ok_or(Unreadable::Short);
    match word(0)? {
        MAGIC => {}
        other if other == MAGIC.swap_bytes() => return Err(Unreadable::BigEndian),
        _ => return Err(Unreadable::NoDump),
    }
    let (size, machine) = (u64::from(word(8)?), word(12)? as u16);
    let flags = long(&head, 32).ok_or(Unreadable::Short)?;
    Ok((Header { machine, is_monotonic: flags & 1 == 0 }, size.max(HEADER)))
}

/// Calls `visit` with each entry, as they are in the file. An entry that is cut off ends them: the program may
/// have been killed, or may still be writing.
///
/// # Errors
/// As [`header`]; the disk fails.
pub(super) fn each(input: &Input, visit: &mut dyn FnMut(Entry<'_>)) -> Result<Header, Unreadable> {
    let (header, mut at) = header(input)?;
    for _ in 0..MOST {
        let read = |size: u64| input.part(at..at.saturating_add(size));
        let head = read(NAME_AT as u64)?;
        let (Some(kind), Some(size)) = (half(&head, 0), half(&head, 4).map(u64::from)) else {
            break;
        };
        let is_whole = at.checked_add(size).is_some_and(|end| end <= input.length());
        if size < PREFIX as u64 || !is_whole {
            break;
        }
        match kind {
            LOAD => {
                let code_size = long(&head, 40).unwrap_or(0);
                let longest = size.saturating_sub(code_size).min(NAME_AT as u64 + LONGEST_NAME);
                visit_load(&read(longest.min(size))?, at, size, visit);
            }
            MOVE => visit_move(&head, size, visit),
            DEBUG if size <= MOST_LINES => {
                let all = read(size)?;
                if let (Some(start), Some(lines)) = (long(&all, 16), all.get(LINES_AT..)) {
                    visit(Entry::Lines { start, lines });
                }
            }
            _ => {}
        }
        at += size;
    }
    Ok(header)
}

/// Loaded code, from the part of its entry before the code; skipped if its sizes contradict each other.
fn visit_load(head: &[u8], at: u64, size: u64, visit: &mut dyn FnMut(Entry<'_>)) {
    let field = |place| long(head, place);
    let (Some(time), Some(start), Some(code_size)) = (field(8), field(32), field(40)) else {
        return;
    };
    let names = head.get(NAME_AT..).unwrap_or_default();
    let Some(length) = names.iter().position(|&byte| byte == 0) else { return };
    let code = (NAME_AT + length + 1) as u64;
    if code.checked_add(code_size).is_none_or(|end| end > size) {
        return;
    }
    let name = &names[..length];
    visit(Entry::Load { time, start, size: code_size, code: at + code, name });
}

fn visit_move(head: &[u8], size: u64, visit: &mut dyn FnMut(Entry<'_>)) {
    // pid, tid, vma, old address, new address, size, number: 64 bytes with the prefix.
    const WHOLE: u64 = 64;
    let (Some(time), Some(old), Some(new)) = (long(head, 8), long(head, 32), long(head, 40)) else {
        return;
    };
    if let (Some(code_size), true) = (long(head, 48), size >= WHOLE) {
        visit(Entry::Move { time, from: old, start: new, size: code_size });
    }
}

/// One source line of a debug entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineAt<'a> {
    pub address: u64,
    pub line: u32,
    /// `None`: as before.
    pub file: Option<&'a [u8]>,
}

/// The lines of a debug entry, as far as they are whole.
pub(super) fn lines(mut bytes: &[u8]) -> impl Iterator<Item = LineAt<'_>> {
    std::iter::from_fn(move || {
        let (address, line) = (long(bytes, 0)?, half(bytes, 8)?);
        let names = bytes.get(PREFIX..)?;
        let length = names.iter().position(|&byte| byte == 0)?;
        let name = &names[..length];
        bytes = &names[length + 1..];
        // 0xff alone stands for the name before.
        Some(LineAt { address, line, file: (name != b"\xff").then_some(name) })
    })
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
