//! A file as it lies in memory: its code, and its constants with relocations applied.
//!
//! Everything is by p_vaddr, as if the file were loaded at 0. Relocations that depend on nothing
//! else (`RELATIVE`) are applied; what only the dynamic linker can know is not readable.

use super::layout::{Layout, Segment};
use crate::code::flow::Memory;
use std::sync::Arc;

/// A file in memory.
#[derive(Debug, Clone)]
pub struct Image {
    data: Arc<Vec<u8>>,
    layout: Arc<Layout>,
    /// Eight bytes each, by address: what is there once loaded, if it can be known.
    relocated: Arc<Vec<(u64, Option<u64>)>>,
}

/// `EM_X86_64` and `EM_AARCH64` of the ELF specification's processor supplements.
const X86_64: u16 = 62;
const AARCH64: u16 = 183;
/// Tags of the dynamic section (ELF specification, "Dynamic Section").
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_PLTRELSZ: u64 = 2;
const DT_JMPREL: u64 = 23;
/// Bytes of a relocated word.
const WORD: u64 = 8;

/// A relocation with its addend, `Elf64_Rela`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rela {
    pub address: u64,
    pub kind: u32,
    pub symbol: u32,
    pub addend: u64,
}

/// The relocations in a table of `Elf64_Rela`, little endian.
pub(super) fn relas(table: &[u8]) -> impl Iterator<Item = Rela> {
    table.chunks_exact(24).map(|entry| {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| entry[at + i]));
        let info = word(8);
        let (symbol, kind) = ((info >> 32) as u32, info as u32);
        Rela { address: word(0), kind, symbol, addend: word(16) }
    })
}

impl Image {
    /// The image of a file with this layout.
    pub(super) fn new(data: Arc<Vec<u8>>, layout: Arc<Layout>) -> Self {
        let mut image = Self { data, layout, relocated: Arc::default() };
        image.relocated = Arc::new(image.relocations());
        image
    }

    /// The bytes of executable code from `start` to `end`; `None` unless one segment has them all.
    pub fn code(&self, start: u64, end: u64) -> Option<&[u8]> {
        let executable = self.layout.segments.iter().filter(|s| s.executable);
        executable.filter_map(|segment| self.bytes(segment, start, end)).next()
    }

    /// What the file has of a segment from `start` to `end`.
    fn bytes(&self, segment: &Segment, start: u64, end: u64) -> Option<&[u8]> {
        let from = start.checked_sub(segment.address)?;
        let to = end.checked_sub(segment.address)?;
        if from > to || to > segment.file_size {
            return None;
        }
        let from = usize::try_from(segment.offset.checked_add(from)?).ok()?;
        let to = usize::try_from(segment.offset.checked_add(to)?).ok()?;
        self.data.get(from..to)
    }

    /// The bytes of the file from `start` to `end`, whatever segment they are in.
    fn anywhere(&self, start: u64, end: u64) -> Option<&[u8]> {
        self.layout.segments.iter().find_map(|segment| self.bytes(segment, start, end))
    }

    /// All words that the dynamic linker writes. Packed ones (`DT_RELR`) and those of 32-bit x86
    /// keep their addend in place: loaded at 0, the file has their value already.
    fn relocations(&self) -> Vec<(u64, Option<u64>)> {
        let relative = match self.layout.machine {
            X86_64 => 8,
            AARCH64 => 1027,
            _ => return Vec::new(),
        };
        if !self.layout.is_64_little {
            return Vec::new();
        }
        let mut words: Vec<_> = [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)]
            .into_iter()
            .filter_map(|(table, size)| {
                let start = self.dynamic(table)?;
                self.anywhere(start, start.checked_add(self.dynamic(size)?)?)
            })
            .flat_map(relas)
            .filter(|rela| rela.kind != 0)
            .map(|rela| (rela.address, (rela.kind == relative).then_some(rela.addend)))
            .collect();
        words.sort_unstable();
        words
    }

    /// The value of a tag of the dynamic section.
    fn dynamic(&self, tag: u64) -> Option<u64> {
        let (offset, size) = self.layout.dynamic?;
        let start = usize::try_from(offset).ok()?;
        let end = usize::try_from(offset.checked_add(size)?).ok()?;
        self.data.get(start..end)?.chunks_exact(16).find_map(|entry| {
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| entry[at + i]));
            (word(0) == tag).then(|| word(8))
        })
    }

    /// Whether nothing writes to `start..end` once the program runs.
    fn is_constant(&self, segment: &Segment, start: u64, end: u64) -> bool {
        let in_relro =
            |&(address, size): &(u64, u64)| start >= address && end <= address.saturating_add(size);
        !segment.writable || self.layout.relro.iter().any(in_relro)
    }
}

impl Memory for Image {
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let end = address.checked_add(length as u64)?;
        let segment = self
            .layout
            .segments
            .iter()
            .find(|s| address >= s.address && end <= s.address.saturating_add(s.memory_size))?;
        if !self.is_constant(segment, address, end) {
            return None;
        }
        let in_file = end.min(segment.address.saturating_add(segment.file_size)).max(address);
        let known = self.bytes(segment, address, in_file).unwrap_or_default();
        // Beyond what the file has, memory is zero; not more than a segment of the file's size
        // could have been asked for sensibly.
        if length.saturating_sub(known.len()) > self.data.len() {
            return None;
        }
        let mut bytes = known.to_vec();
        bytes.resize(length, 0);
        let first = self.relocated.partition_point(|(at, _)| at.saturating_add(WORD) <= address);
        for &(at, value) in self.relocated[first..].iter().take_while(|(at, _)| *at < end) {
            for (place, byte) in (at..).zip(value?.to_le_bytes()) {
                if (address..end).contains(&place) {
                    bytes[(place - address) as usize] = byte;
                }
            }
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(address: u64, file_size: u64, memory_size: u64, writable: bool) -> Segment {
        Segment { offset: 0, file_size, address, memory_size, writable, executable: false }
    }

    #[test]
    fn constants_are_read_relocated_and_variables_not() {
        let layout = Layout {
            segments: vec![segment(0x1000, 0x20, 0x28, false), segment(0x2000, 0x20, 0x40, true)],
            relro: vec![(0x2000, 0x10)],
            ..Layout::default()
        };
        let data = Arc::new((0..0x20).collect::<Vec<u8>>());
        let mut image = Image::new(data, Arc::new(layout));
        image.relocated = Arc::new(vec![(0x1008, Some(0x1122334455667788)), (0x1018, None)]);
        assert_eq!(image.read(0x1000, 4), Some(vec![0, 1, 2, 3]));
        assert_eq!(image.read(0x1006, 4), Some(vec![6, 7, 0x88, 0x77]));
        assert_eq!(image.read(0x100e, 4), Some(vec![0x22, 0x11, 0x10, 0x11]));
        assert_eq!(image.read(0x1018, 4), None, "only the dynamic linker knows");
        assert_eq!(image.read(0x1020, 8), Some(vec![0; 8]), "beyond the file");
        assert_eq!(image.read(0x1024, 8), None, "beyond the segment");
        assert_eq!(image.read(0x2000, 2), Some(vec![0, 1]), "read-only once relocated");
        assert_eq!(image.read(0x2010, 2), None, "variables");
        assert_eq!(image.read(u64::MAX, 2), None);
    }
}
