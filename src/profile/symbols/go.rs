//! Reads the functions of stripped Go programs from the table that the run time needs for stack traces
//! (`.gopclntab`), which no linker flag removes.
//!
//! Layouts: Go's runtime/symtab.go (`pcHeader`, `functab`, `_func`) and debug/gosym/pclntab.go, of Go 1.2, 1.16, 1.18
//! and 1.20 (unchanged in later releases).

use super::table::{Binding, Symbol};
use object::{Object as _, ObjectSection as _};
use std::ops::Range;

/// Names of the section; the second of position-independent programs.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// Longest name: those of generic functions have their type arguments.
const LONGEST_NAME: usize = 1 << 14;
/// Most bytes of all names: functions may share one, and a made file has one for all. One without an end counts as the
/// longest, as it takes as long.
const MOST_NAMES: usize = 256 << 20;

/// Largest table: a compressed one can claim any size.
const LARGEST: u64 = 1 << 30;

/// Which release wrote a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Go1_2,
    Go1_16,
    /// From 1.18 on; 1.20 has another number only.
    Go1_18,
}

/// A table.
struct Lines<'a> {
    data: &'a [u8],
    version: Version,
    /// Bytes of a pointer.
    pointer: usize,
}

/// The functions of `file`; none if it is no Go program, or its table is damaged. `relocated` gives what the loader
/// writes to an address.
pub(super) fn functions(
    file: &object::File<'_>,
    relocated: impl Fn(u64) -> Option<u64>,
) -> Vec<Symbol> {
    let Some(section) = SECTIONS.iter().find_map(|name| file.section_by_name(name)) else {
        return Vec::new();
    };
    let compressed = section.compressed_data().ok().filter(|c| c.uncompressed_size <= LARGEST);
    let data = compressed.and_then(|compressed| compressed.decompress().ok());
    let (Some(data), true) = (data, file.is_little_endian()) else {
        return Vec::new();
    };
    let text = file.section_by_name(".text").map(|text| text.address());
    let start = |at: usize| relocated(section.address().wrapping_add(at as u64));
    Lines::new(&data).and_then(|lines| lines.functions(text, start)).unwrap_or_default()
}

impl<'a> Lines<'a> {
    fn new(data: &'a [u8]) -> Option<Self> {
        let (magic, rest) = data.split_first_chunk::<4>()?;
        let version = match u32::from_le_bytes(*magic) {
            0xffff_fffb => Version::Go1_2,
            0xffff_fffa => Version::Go1_16,
            0xffff_fff0 | 0xffff_fff1 => Version::Go1_18,
            _ => return None,
        };
        // Two zeros, the smallest instruction, the size of a pointer.
        let [0, 0, 1 | 2 | 4, pointer @ (4 | 8)] = *rest.first_chunk::<4>()? else { return None };
        Some(Self { data, version, pointer: pointer.into() })
    }

    fn number(&self, at: usize, size: usize) -> Option<u64> {
        let bytes = self.data.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Where in the table the header's word `n` is.
    fn word_at(&self, n: usize) -> usize {
        8 + n * self.pointer
    }

    /// The header's word `n`, as an offset or a number.
    fn word(&self, n: usize) -> Option<usize> {
        usize::try_from(self.number(self.word_at(n), self.pointer)?).ok()
    }

    /// Where the names, the list of functions and what it points into begin.
    fn parts(&self) -> Option<(usize, usize, usize)> {
        Some(match self.version {
            Version::Go1_2 => (0, self.word_at(1), 0),
            Version::Go1_16 => (self.word(2)?, self.word(6)?, self.word(6)?),
            Version::Go1_18 => (self.word(3)?, self.word(7)?, self.word(7)?),
        })
    }

    /// The address that those of functions are relative to. In position-independent programs the loader writes it;
    /// newer linkers leave it out, and it is that of the code.
    fn base(&self, text: Option<u64>, relocated: impl Fn(usize) -> Option<u64>) -> Option<u64> {
        if self.version != Version::Go1_18 {
            return Some(0);
        }
        let own = self.number(self.word_at(2), self.pointer).filter(|start| *start > 0);
        relocated(self.word_at(2)).or(own).or(text)
    }

    fn functions(
        &self,
        text: Option<u64>,
        relocated: impl Fn(usize) -> Option<u64>,
    ) -> Option<Vec<Symbol>> {
        let (names, list, details) = self.parts()?;
        let base = self.base(text, relocated)?;
        let size = if self.version == Version::Go1_18 { 4 } else { self.pointer };
        let room = self.data.len().checked_sub(list)? / (2 * size);
        let count = self.word(0)?.min(room);
        let address = |n: usize| {
            let own = self.number(list + 2 * n * size, size)?;
            base.checked_add(own)
        };
        let (mut all, mut bytes) = (Vec::new(), 0);
        for n in 0..count {
            let (Some(start), Some(end)) = (address(n), address(n + 1)) else { break };
            let range = start..end;
            let at = self.number(list + (2 * n + 1) * size, size);
            let at = at.and_then(|at| details.checked_add(usize::try_from(at).ok()?));
            let name = at.and_then(|at| self.name(names, at.checked_add(size)?));
            bytes += name.map_or(LONGEST_NAME, <[u8]>::len);
            if bytes > MOST_NAMES {
                break;
            }
            all.extend(name.and_then(|name| symbol(&range, name)));
        }
        Some(all)
    }

    /// The name whose offset is at `at`.
    fn name(&self, names: usize, at: usize) -> Option<&'a [u8]> {
        let offset = usize::try_from(self.number(at, 4)?).ok()?;
        let rest = self.data.get(names.checked_add(offset)?..)?;
        let rest = &rest[..rest.len().min(LONGEST_NAME)];
        rest.iter().position(|byte| *byte == 0).map(|end| &rest[..end])
    }
}

fn symbol(range: &Range<u64>, name: &[u8]) -> Option<Symbol> {
    let size = range.end.checked_sub(range.start).filter(|size| *size > 0)?;
    let name = String::from_utf8_lossy(name);
    (!name.is_empty()).then(|| Symbol {
        start: range.start,
        size,
        binding: Binding::Local,
        label: false,
        name: name.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Addresses of two functions, and where they end.
    const ADDRESSES: [u64; 3] = [0x40_1000, 0x40_1040, 0x40_10c0];
    const NAMES: &[u8] = b"main.main\0main.hot\0";

    /// A table as debug/gosym/pclntab.go reads it, pointers of 8 bytes.
    fn table(magic: u32) -> Vec<u8> {
        let header = |words: &[u64]| {
            let head = [&magic.to_le_bytes()[..], &[0, 0, 1, 8]].concat();
            [head, words.iter().flat_map(|word| word.to_le_bytes()).collect()].concat()
        };
        let offsets = [0u32, 10];
        if magic >= 0xffff_fffa {
            // Addresses and offsets of pointer size; each function's address again before its name.
            let is_first = magic == 0xffff_fffb;
            let words = if is_first { 1 } else { 7 };
            let (head, names_first) = (8 + 8 * words, 8 + 8 * words + 2 * 2 * 8 + 8 + 2 * 12);
            let list_at = if is_first { 0 } else { head };
            let details = head - list_at + 5 * 8;
            let mut out = match is_first {
                true => header(&[2]),
                false => header(&[2, 0, names_first as u64, 0, 0, 0, head as u64]),
            };
            for (n, address) in ADDRESSES[..2].iter().enumerate() {
                out.extend(address.to_le_bytes());
                out.extend(((details + 12 * n) as u64).to_le_bytes());
            }
            out.extend(ADDRESSES[2].to_le_bytes());
            for (address, offset) in ADDRESSES.iter().zip(offsets) {
                out.extend(address.to_le_bytes());
                let names = if is_first { names_first as u32 } else { 0 };
                out.extend((names + offset).to_le_bytes());
            }
            assert_eq!(out.len(), names_first);
            return [out, NAMES.to_vec()].concat();
        }
        let names = 8 + 8 * 8;
        let list = names + NAMES.len();
        let mut out = header(&[2, 0, ADDRESSES[0], names as u64, 0, 0, 0, list as u64]);
        out.extend(NAMES);
        for n in 0..2u32 {
            out.extend(((ADDRESSES[n as usize] - ADDRESSES[0]) as u32).to_le_bytes());
            out.extend((20 + 8 * n).to_le_bytes());
        }
        out.extend(((ADDRESSES[2] - ADDRESSES[0]) as u32).to_le_bytes());
        for (address, offset) in ADDRESSES.iter().zip(offsets) {
            out.extend(((address - ADDRESSES[0]) as u32).to_le_bytes());
            out.extend(offset.to_le_bytes());
        }
        out
    }

    fn read(data: &[u8], base: Option<u64>) -> Vec<(String, u64, u64)> {
        let all = Lines::new(data).and_then(|lines| lines.functions(None, |_| base));
        let all = all.unwrap_or_default();
        all.into_iter().map(|s| (s.name.into(), s.start, s.size)).collect()
    }

    #[test]
    fn tables_of_all_releases_give_names_and_ranges() {
        for magic in [0xffff_fffb, 0xffff_fffa, 0xffff_fff0, 0xffff_fff1] {
            let found = read(&table(magic), None);
            let expected = [
                ("main.main".to_owned(), 0x40_1000, 0x40),
                ("main.hot".to_owned(), 0x40_1040, 0x80),
            ];
            assert_eq!(found, expected, "{magic:#x}");
        }
        // Position-independent: the loader writes where the code begins.
        let moved = read(&table(0xffff_fff1), Some(0x9000));
        assert_eq!((moved[1].1, moved[1].2), (0x9040, 0x80));
        assert!(read(&table(0xffff_fff7), None).is_empty());
    }

    proptest! {
        #[test]
        fn damaged_tables_end_in_fewer_functions(
            magic in prop::sample::select(vec![0xffff_fffbu32, 0xffff_fffa, 0xffff_fff1]),
            at in 4usize..120,
            byte: u8,
            length in 0usize..200,
        ) {
            let mut data = table(magic);
            if let Some(place) = data.get_mut(at) {
                *place = byte;
            }
            data.truncate(length);
            prop_assert!(read(&data, None).len() <= 100);
        }
    }
}
