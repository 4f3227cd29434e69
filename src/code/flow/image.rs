//! The memory of a program as its ELF file describes it: what is read-only once it runs.

use super::Memory;
use object::elf::{PF_W, PF_X, PT_GNU_RELRO, PT_LOAD, R_X86_64_64, R_X86_64_RELATIVE};
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSymbol as _, ObjectSymbolTable as _};
use object::{RelocationFlags, RelocationTarget};
use std::collections::BTreeMap;
use std::ops::Range;

/// A part of the file that is loaded.
#[derive(Debug)]
struct Part<'data> {
    start: u64,
    bytes: &'data [u8],
    writable: bool,
    executable: bool,
}

/// The program's memory, with relocations applied that the file alone decides. Addresses are
/// p_vaddr.
#[derive(Debug)]
pub struct Image<'data> {
    parts: Vec<Part<'data>>,
    /// Written by the dynamic linker, then read-only.
    relro: Vec<Range<u64>>,
    /// Words that the dynamic linker writes; `None` where only it knows what.
    relocated: BTreeMap<u64, Option<u64>>,
}

impl<'data> Image<'data> {
    /// Of a 64-bit ELF file; whatever of it cannot be read is not there.
    pub fn new(file: &ElfFile64<'data, Endianness>) -> Self {
        let (endian, data) = (file.endian(), file.data());
        let mut image = Self { parts: Vec::new(), relro: Vec::new(), relocated: BTreeMap::new() };
        for header in file.elf_program_headers() {
            let start = header.p_vaddr(endian);
            let flags = header.p_flags(endian);
            if header.p_type(endian) == PT_GNU_RELRO {
                image.relro.push(start..start.saturating_add(header.p_memsz(endian)));
            } else if header.p_type(endian) == PT_LOAD {
                image.parts.push(Part {
                    start,
                    bytes: header.data(endian, data).unwrap_or_default(),
                    writable: flags.contains(PF_W),
                    executable: flags.contains(PF_X),
                });
            }
        }
        image.relocated = relocated(file);
        image
    }

    fn part(&self, address: u64, length: usize) -> Option<(&Part<'data>, &'data [u8])> {
        self.parts.iter().find_map(|part| {
            let offset = usize::try_from(address.checked_sub(part.start)?).ok()?;
            Some((part, part.bytes.get(offset..offset.checked_add(length)?)?))
        })
    }
}

/// The words that dynamic relocations write.
fn relocated(file: &ElfFile64<'_, Endianness>) -> BTreeMap<u64, Option<u64>> {
    let symbols = file.dynamic_symbol_table();
    let relocations = file.dynamic_relocations().into_iter().flatten();
    let words = relocations.map(|(address, relocation)| {
        let addend = relocation.addend().cast_unsigned();
        let value = match (relocation.flags(), relocation.target()) {
            (RelocationFlags::Elf { r_type }, _) if r_type == R_X86_64_RELATIVE => Some(addend),
            (RelocationFlags::Elf { r_type }, RelocationTarget::Symbol(index))
                if r_type == R_X86_64_64 =>
            {
                let symbol = symbols.as_ref().and_then(|s| s.symbol_by_index(index).ok());
                let local = symbol.filter(|s| s.is_definition() && s.is_local());
                local.map(|s| s.address().wrapping_add(addend))
            }
            _ => None,
        };
        (address, value)
    });
    words.collect()
}

impl Memory for Image<'_> {
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let end = address.checked_add(length as u64)?;
        let (part, bytes) = self.part(address, length)?;
        let relro = || self.relro.iter().any(|r| r.start <= address && end <= r.end);
        if part.writable && !relro() {
            return None;
        }
        let mut bytes = bytes.to_vec();
        for (&at, value) in self.relocated.range(address.saturating_sub(7)..end) {
            let value = (*value)?;
            for (offset, byte) in value.to_le_bytes().into_iter().enumerate() {
                let place = at.wrapping_add(offset as u64).wrapping_sub(address);
                if let Some(target) = usize::try_from(place).ok().and_then(|p| bytes.get_mut(p)) {
                    *target = byte;
                }
            }
        }
        Some(bytes)
    }

    fn is_code(&self, address: u64) -> bool {
        self.part(address, 1).is_some_and(|(part, _)| part.executable)
    }
}
