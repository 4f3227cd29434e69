//! The code of an ELF file, and sets of addresses.

use super::names::{contents, named, stubs};
use super::no_code::{NoCode, foreign};
use super::unwind::landing_pads;
use isa::elf::Segment;
use isa::flow::Image;
use object::elf::{DT_FLAGS, DT_FLAGS_1, DT_TEXTREL, DynamicTag, ET_EXEC};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags,
    RelocationTarget,
};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// `DF_TEXTREL` (ELF gABI, dynamic section).
const DF_TEXTREL: u64 = 4;
/// `DF_1_PIE` (glibc, elf.h).
const DF_1_PIE: u64 = 0x0800_0000;

/// An ELF file whose code is probed. Addresses are p_vaddr.
pub struct Module {
    /// Its memory.
    pub image: Image<Arc<Vec<u8>>>,
    /// It is not position-independent: loaded at its own addresses.
    pub is_fixed: bool,
    /// It is a program, which no other one can load as a library.
    pub is_program: bool,
    /// It has the relocations of its code (`ld -q`).
    pub has_relocations: bool,
    /// It has line numbers (DWARF).
    pub has_lines: bool,
    /// Addresses in relocations, symbols and the header.
    pub(super) named: Addresses,
    /// Landing pads of exceptions.
    pub(super) pads: Addresses,
    /// Known functions and stubs, ascending and disjoint.
    pub(super) functions: Vec<Range<u64>>,
}

impl Module {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, NoCode> {
        let data = contents(path)?;
        if let Some(why) = foreign(&data) {
            return Err(why);
        }
        let data = Arc::new(data);
        let image = Image::new(Arc::clone(&data))?;
        let elf = ElfFile64::<Endianness>::parse(&**data).map_err(NoCode::Damaged)?;
        if has_text_relocations(&elf) {
            return Err(NoCode::TextRelocations);
        }
        if image.layout.segments.iter().any(|s| s.writable && s.executable) {
            return Err(NoCode::WritableCode);
        }
        let general = object::File::parse(&**data).map_err(NoCode::Damaged)?;
        if general.section_by_name("__rseq_cs").is_some_and(|s| s.size() > 0) {
            return Err(NoCode::Restartable);
        }
        let mut functions: Vec<Range<u64>> =
            named(&general).into_iter().map(|function| function.range).collect();
        functions.extend(stubs(&general));
        functions.sort_by_key(|range| range.start);
        let pads = landing_pads(&general, &image)?.into_iter().collect();
        let mut named = Vec::new();
        let symbols = elf.symbols().chain(elf.dynamic_symbols());
        named.extend(symbols.filter(|s| s.is_definition()).map(|s| s.address()));
        named.push(elf.entry());
        named.extend(relocated(&elf));
        let is_fixed = elf.elf_header().e_type(elf.endian()) == ET_EXEC;
        let named = named.into_iter().collect();
        let has = |name: &str| general.section_by_name(name).is_some_and(|s| s.size() > 0);
        Ok(Self {
            is_fixed,
            is_program: is_fixed || has_flag(&elf, DT_FLAGS_1, DF_1_PIE),
            has_relocations: has(".rela.text"),
            has_lines: has(".debug_line"),
            image,
            named,
            pads,
            functions,
        })
    }

    /// The offset in the file of the code at an address.
    pub fn offset(&self, address: u64) -> Option<u64> {
        self.image.layout.offset_of(address)
    }

    /// First addresses and bytes of its executable segments.
    pub fn executable(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let all = self.image.layout.segments.iter().filter(|segment| segment.executable);
        all.map(|segment| (segment.address, self.image.of(segment)))
    }

    /// Whether exceptions continue at an address.
    pub fn is_landing_pad(&self, address: u64) -> bool {
        self.pads.contains(&address)
    }

    /// The bytes of code at a range of addresses.
    pub fn code(&self, range: Range<u64>) -> Option<&[u8]> {
        self.image.code(range.start, range.end)
    }

    /// All its addresses.
    pub fn extent(&self) -> Range<u64> {
        let all = || self.image.layout.segments.iter().map(Segment::in_file);
        let start = all().map(|range| range.start).min().unwrap_or(0);
        start..all().map(|range| range.end).max().unwrap_or(start)
    }
}

fn has_text_relocations(elf: &ElfFile64<'_, Endianness>) -> bool {
    dynamic(elf).any(|(tag, _)| tag == DT_TEXTREL) || has_flag(elf, DT_FLAGS, DF_TEXTREL)
}

fn has_flag(elf: &ElfFile64<'_, Endianness>, tag: DynamicTag, flag: u64) -> bool {
    dynamic(elf).any(|(own, value)| own == tag && value & flag != 0)
}

/// Its dynamic section: tags with their values.
fn dynamic(elf: &ElfFile64<'_, Endianness>) -> impl Iterator<Item = (DynamicTag, u64)> {
    let endian = elf.endian();
    let headers = elf.elf_program_headers().iter();
    let entries = headers.filter_map(move |h| h.dynamic(endian, elf.data()).ok().flatten());
    entries.flatten().map(move |entry| (entry.d_tag.get(endian), entry.d_val.get(endian)))
}

/// Addresses that the loader writes into data, as in tables of labels and functions.
fn relocated(elf: &ElfFile64<'_, Endianness>) -> Vec<u64> {
    let all = elf.dynamic_relocations().into_iter().flatten();
    let absolute = all.filter_map(|(_, relocation)| match relocation.target() {
        RelocationTarget::Absolute => Some(relocation.addend().cast_unsigned()),
        RelocationTarget::Symbol(index)
            if matches!(relocation.flags(), RelocationFlags::Elf { .. }) =>
        {
            let symbols = elf.dynamic_symbol_table();
            let symbol = object::ObjectSymbolTable::symbol_by_index(&symbols?, index).ok()?;
            Some(symbol.address().wrapping_add(relocation.addend().cast_unsigned()))
        }
        _ => None,
    });
    absolute.collect()
}

/// Addresses, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses(Vec<u64>);

impl Addresses {
    /// Whether it contains this address.
    pub fn contains(&self, address: &u64) -> bool {
        self.0.binary_search(address).is_ok()
    }

    /// Addresses in a range.
    pub fn within(&self, range: &Range<u64>) -> &[u64] {
        let from = self.0.partition_point(|address| *address < range.start);
        let rest = &self.0[from..];
        &rest[..rest.partition_point(|address| *address < range.end)]
    }

    /// Whether an address is inside the range, after its start.
    pub fn divide(&self, range: &Range<u64>) -> bool {
        let after = self.0.partition_point(|address| *address <= range.start);
        self.0.get(after).is_some_and(|address| *address < range.end)
    }

    /// Adds addresses.
    pub fn extend(&mut self, more: impl IntoIterator<Item = u64>) {
        self.0.extend(more);
        self.0.sort_unstable();
        self.0.dedup();
    }

    /// All addresses, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }
}

impl FromIterator<u64> for Addresses {
    fn from_iter<T: IntoIterator<Item = u64>>(all: T) -> Self {
        let mut addresses = Self::default();
        addresses.extend(all);
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_divided_by_what_is_inside_it() {
        let all: Addresses = [9, 4, 4].into_iter().collect();
        assert_eq!((all.within(&(4..9)), all.contains(&9)), (&[4][..], true));
        assert_eq!([3..5, 4..9, 4..10].map(|range| all.divide(&range)), [true, false, true]);
    }
}
