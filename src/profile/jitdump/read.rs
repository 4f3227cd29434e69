//! Reads the entries of a jitdump and its code: names, source lines, bytes. Reading a damaged one takes no more
//! memory than the bytes of one entry, whatever it claims.

use crate::files::Unreadable;
use crate::input::Input;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use tma::files::{LONGEST_PROGRAM, LONGEST_TEXT};

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

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Header {
    /// `e_machine` of the code.
    pub machine: u16,
    /// Whether times are nanoseconds of `CLOCK_MONOTONIC`, not ticks of a counter.
    pub is_monotonic: bool,
}

fn header(input: &Input) -> Result<(Header, u64), Unreadable> {
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
fn lines(mut bytes: &[u8]) -> impl Iterator<Item = LineAt<'_>> {
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

/// Most source lines of a file.
const MOST_ROWS: usize = 1 << 22;
/// V8 adds the size of an ELF header to the addresses of lines, for `perf inject`.
const V8_SHIFT: u64 = 0x40;
/// Size of the ELF header and the one program header that make a file of the code.
const HEADERS: u64 = 64 + 56;

/// A source line from an offset in the file on.
#[derive(Debug, Clone, Copy)]
struct Row {
    at: u64,
    line: u32,
    /// Number in [`JitProgram::files`].
    file: u32,
}

/// A function: its name, and where in the file its code is.
#[derive(Debug)]
pub(crate) struct Function {
    pub name: Box<str>,
    pub start: u64,
    pub size: u64,
}

/// Lines of a jitdump's code.
#[derive(Debug, Default)]
pub(crate) struct JitProgram {
    rows: Vec<Row>,
    files: Vec<Arc<str>>,
}

impl JitProgram {
    /// Functions, and what else is known of them.
    pub fn read(file: File) -> Result<(Vec<Function>, Self), Unreadable> {
        let input = Input::of_file(file)?;
        let mut reading = Reading::default();
        each(&input, &mut |entry| reading.take(entry))?;
        Ok(reading.finish())
    }

    /// File and line (from 1) of the code at an offset, in a function that begins at `start`.
    pub fn line(&self, start: u64, at: u64) -> Option<(Option<&str>, Option<u32>)> {
        let after = self.rows.partition_point(|row| row.at <= at);
        let row = self.rows.get(after.checked_sub(1)?).filter(|row| row.at >= start)?;
        let file = self.files.get(row.file as usize).map(|file| &**file);
        Some((file, (row.line > 0).then_some(row.line)))
    }
}

/// An ELF file whose only segment is a whole jitdump, each byte at the address of its offset.
///
/// # Errors
/// It is too large, or cannot be read.
pub(crate) fn elf(file: File) -> Result<Vec<u8>, Unreadable> {
    let input = Input::of_file(file)?;
    let size = input.length();
    if size > LONGEST_TEXT {
        return Err(Unreadable::Megabytes(LONGEST_TEXT >> 20));
    }
    let (header, _) = header(&input)?;
    // ELF gABI: 64 bits, little-endian; ET_DYN, machine, version; the program header follows the file header.
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0".to_vec();
    bytes.extend(header.machine.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend([0_u64, 64, 0].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend([64_u16, 56, 1, 64, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    // PT_LOAD, readable and executable; offset, address, physical address, sizes, alignment.
    bytes.extend([1_u32, 5].iter().flat_map(|half| half.to_le_bytes()));
    bytes.extend([HEADERS, 0, 0, size, size, 1].iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(input.part(0..size)?);
    Ok(bytes)
}

/// Contents read so far.
#[derive(Debug, Default)]
struct Reading {
    functions: Vec<Function>,
    program: JitProgram,
    /// Numbers of files.
    numbers: HashMap<Arc<str>, u32>,
    /// Address of the code that the pending lines are of, and those.
    pending: Option<(u64, Vec<Row>)>,
    /// Least distance of a line from the start of its function.
    nearest: Option<u64>,
}

impl Reading {
    fn take(&mut self, entry: Entry<'_>) {
        match entry {
            Entry::Lines { start, lines } => self.pending = Some((start, self.rows(start, lines))),
            Entry::Load { start, size, code, name, .. } => {
                let name = String::from_utf8_lossy(name).into();
                self.functions.push(Function { name, start: code, size });
                let rows = self.pending.take().filter(|(of, _)| *of == start);
                let rows = rows.into_iter().flat_map(|(_, rows)| rows);
                // A line may begin beyond the code only as far as V8 shifts it.
                let last = size.saturating_add(V8_SHIFT);
                let rows = rows.filter(|row| row.at < last);
                self.program.rows.extend(rows.map(|row| Row { at: row.at + code, ..row }));
            }
            Entry::Move { .. } => {}
        }
    }

    /// Lines relative to the code's start.
    fn rows(&mut self, start: u64, bytes: &[u8]) -> Vec<Row> {
        let mut file = 0;
        let mut rows = Vec::new();
        let left = MOST_ROWS.saturating_sub(self.program.rows.len());
        for one in lines(bytes).take(left) {
            if let Some(name) = one.file {
                file = self.file(name);
            }
            if let Some(at) = one.address.checked_sub(start) {
                self.nearest = Some(self.nearest.map_or(at, |nearest| nearest.min(at)));
                rows.push(Row { at, line: one.line, file });
            }
        }
        rows
    }

    fn file(&mut self, name: &[u8]) -> u32 {
        let name: Arc<str> = tma::text::name(&String::from_utf8_lossy(name)).into();
        if let Some(&known) = self.numbers.get(&name) {
            return known;
        }
        let number = self.program.files.len() as u32;
        self.program.files.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    fn finish(mut self) -> (Vec<Function>, JitProgram) {
        if self.nearest.is_some_and(|nearest| nearest >= V8_SHIFT) {
            self.program.rows.iter_mut().for_each(|row| row.at -= V8_SHIFT);
        }
        self.program.rows.sort_by_key(|row| row.at);
        // Entries are in the file one after another, so their code is, too.
        let functions = &self.functions;
        self.program.rows.retain(|row| {
            let after = functions.partition_point(|function| function.start <= row.at);
            let own = after.checked_sub(1).and_then(|own| functions.get(own));
            own.is_some_and(|own| row.at - own.start < own.size)
        });
        (self.functions, self.program)
    }
}
