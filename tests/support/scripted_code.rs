//! The code of a program that a scripted recording is of.

use super::files::text;
use super::perf_data::{padded, record, words};
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SegmentFlags};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Process and first thread.
pub const PID: u64 = 11;

/// The code of a program.
pub struct Code {
    symbols: Vec<(String, Range<u64>)>,
    /// Address, offset in the file, length.
    segment: (u64, u64, u64),
}

impl Code {
    pub fn of(program: &Path) -> Self {
        let data = fs::read(program).expect("the program");
        let file = object::File::parse(&*data).expect("an ELF file");
        let symbols = file
            .symbols()
            .filter_map(|s| Some((s.name().ok()?.to_owned(), s.address()..s.address() + s.size())));
        let is_code = |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X));
        let segment = file.segments().find(|s| is_code(s.flags())).expect("code");
        let (offset, length) = segment.file_range();
        Self { symbols: symbols.collect(), segment: (segment.address(), offset, length) }
    }

    pub fn function(&self, name: &str) -> Range<u64> {
        let found = self.symbols.iter().find(|(symbol, range)| symbol == name && !range.is_empty());
        found.unwrap_or_else(|| panic!("{name} in the program")).1.clone()
    }

    /// COMM and MMAP records; the program lies where its addresses say.
    pub fn mapping(&self, program: &Path) -> Vec<u8> {
        let trailer = words(&[PID << 32 | PID, 1, id(0)]);
        let comm = [words(&[PID << 32 | PID]), b"work\0\0\0\0".to_vec(), trailer.clone()].concat();
        let (address, offset, length) = self.segment;
        let path = padded(text(program));
        let head = words(&[PID << 32 | PID, address, length, offset]);
        [record(3, 1 << 13, &comm), record(1, 2, &[head, path, trailer].concat())].concat()
    }
}

/// The id of an event.
pub fn id(event: usize) -> u64 {
    101 + event as u64
}
