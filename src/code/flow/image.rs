//! The memory of a program as its ELF file describes it: what is read-only once it runs.

use super::Memory;
use super::no_return::never_returns;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::elf::{PF_W, PF_X, PT_GNU_RELRO, PT_LOAD, R_X86_64_64, R_X86_64_RELATIVE};
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSymbol as _, ObjectSymbolTable as _};
use object::{RelocationFlags, RelocationTarget};
use std::collections::{BTreeMap, HashSet};
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
    /// Functions that never return, and words that the dynamic linker points to such functions.
    no_return: HashSet<u64>,
}

impl<'data> Image<'data> {
    /// Of a 64-bit ELF file; whatever of it cannot be read is not there.
    pub fn new(file: &ElfFile64<'data, Endianness>) -> Self {
        let (endian, data) = (file.endian(), file.data());
        let mut image = Self {
            parts: Vec::new(),
            relro: Vec::new(),
            relocated: relocated(file),
            no_return: no_return(file),
        };
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

/// The functions of the file, and the words for functions of others, that never return.
fn no_return(file: &ElfFile64<'_, Endianness>) -> HashSet<u64> {
    let is_one = |name: object::Result<&[u8]>| name.is_ok_and(never_returns);
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let defined = symbols.filter(|s| s.is_definition() && is_one(s.name_bytes()));
    let mut found: HashSet<u64> = defined.map(|s| s.address()).collect();
    let table = file.dynamic_symbol_table();
    for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
        if let RelocationTarget::Symbol(index) = relocation.target() {
            let symbol = table.as_ref().and_then(|t| t.symbol_by_index(index).ok());
            if symbol.is_some_and(|s| is_one(s.name_bytes())) {
                found.insert(address);
            }
        }
    }
    found
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
    fn returns(&self, callee: u64) -> bool {
        if self.no_return.is_empty() || self.no_return.contains(&callee) {
            return self.no_return.is_empty();
        }
        // A stub of the procedure linkage table: `endbr64` perhaps, then `jmp [rip+word]`.
        let Some((part, _)) = self.part(callee, 1) else { return true };
        let offset = usize::try_from(callee - part.start).unwrap_or(usize::MAX);
        let code = part.bytes.get(offset..).unwrap_or_default();
        let mut decoder = Decoder::with_ip(64, code, callee, DecoderOptions::NONE);
        let jump = decoder.iter().take(2).find(|i| i.mnemonic() == Mnemonic::Jmp);
        let word = jump.filter(iced_x86::Instruction::is_ip_rel_memory_operand);
        !word.is_some_and(|jump| self.no_return.contains(&jump.ip_rel_memory_address()))
    }
}
