//! The code of a jitdump: names, source lines, bytes.

use super::read::{Entry, each, header, lines};
use crate::files::Unreadable;
use crate::input::Input;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use tma::files::LONGEST_TEXT;

/// Most source lines of a file.
const MOST_LINES: usize = 1 << 22;
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
    ///
    /// # Errors
    /// Why it is no jitdump that can be read.
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
        let left = MOST_LINES.saturating_sub(self.program.rows.len());
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
