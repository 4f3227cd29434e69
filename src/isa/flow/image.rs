//! The memory of a program as its ELF file describes it: its code, and what is read-only once it
//! runs, with relocations applied.
//!
//! The one image of a program: what names blocks by `FILE:FUNCTION+N` and what finds the hot blocks
//! of a recording read the same memory, and so cut the same blocks.

use super::memory::Memory;
use super::no_return::never_returns;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::elf::{PF_W, PF_X, PT_GNU_RELRO, PT_LOAD, R_X86_64_64, R_X86_64_RELATIVE};
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{
    Architecture, Endianness, Object as _, ObjectSymbol as _, ObjectSymbolTable as _,
    RelocationFlags, RelocationTarget,
};
use std::collections::{BTreeMap, HashSet};
use std::ops::{Deref, Range};

/// A part of the file that is loaded.
#[derive(Debug)]
struct Part {
    /// Its addresses. Those that the file has no bytes for are zero.
    memory: Range<u64>,
    /// Its bytes in the file.
    file: Range<usize>,
    writable: bool,
    executable: bool,
}

/// The program's memory, with relocations applied that the file alone decides: as if it were loaded
/// at 0. Addresses are p_vaddr. `D` holds the file's bytes, borrowed or shared.
#[derive(Debug)]
pub struct Image<D> {
    data: D,
    parts: Vec<Part>,
    /// Written by the dynamic linker, then read-only.
    relro: Vec<Range<u64>>,
    /// Words that the dynamic linker writes; `None` where only it knows what.
    relocated: BTreeMap<u64, Option<u64>>,
    /// Functions that never return, and words that the dynamic linker points to such functions.
    no_return: HashSet<u64>,
}

impl<D: Deref<Target: AsRef<[u8]>>> Image<D> {
    /// Of a 64-bit x86 ELF file; whatever of it cannot be read is not there.
    ///
    /// # Errors
    /// Why it is no such file.
    pub fn new(data: D) -> Result<Self, String> {
        let file = ElfFile64::<Endianness>::parse((*data).as_ref())
            .map_err(|error| format!("it is no 64-bit ELF file: {error}"))?;
        if file.architecture() != Architecture::X86_64 {
            return Err(format!("it is for {:?}, not x86-64", file.architecture()));
        }
        let (parts, mut relro) = layout(&file);
        // Relocations are found by sections: without, nobody knows what these words will be.
        if file.sections().next().is_none() {
            relro.clear();
        }
        let (relocated, no_return) = (relocated(&file), no_return(&file));
        Ok(Self { data, parts, relro, relocated, no_return })
    }

    /// The bytes of executable code from `start` to `end`; `None` unless one segment of the file has
    /// them all.
    pub fn code(&self, start: u64, end: u64) -> Option<&[u8]> {
        let length = end.checked_sub(start)?;
        let executable = self.parts.iter().filter(|part| part.executable);
        executable.filter_map(|part| self.bytes(part, start, length)).next()
    }

    /// What the file has of a part: `length` bytes at `address`.
    fn bytes(&self, part: &Part, address: u64, length: u64) -> Option<&[u8]> {
        let offset = usize::try_from(address.checked_sub(part.memory.start)?).ok()?;
        let end = offset.checked_add(usize::try_from(length).ok()?)?;
        self.of(part).get(offset..end)
    }

    fn of(&self, part: &Part) -> &[u8] {
        (*self.data).as_ref().get(part.file.clone()).unwrap_or_default()
    }

    fn part(&self, address: u64) -> Option<&Part> {
        self.parts.iter().find(|part| part.memory.contains(&address))
    }
}

/// What is loaded, and what of it is made read-only once it is relocated.
fn layout(file: &ElfFile64<'_, Endianness>) -> (Vec<Part>, Vec<Range<u64>>) {
    let (endian, data) = (file.endian(), file.data());
    let (mut parts, mut relro) = (Vec::new(), Vec::new());
    for header in file.elf_program_headers() {
        let start = header.p_vaddr(endian);
        let memory = start..start.saturating_add(header.p_memsz(endian));
        let flags = header.p_flags(endian);
        if header.p_type(endian) == PT_GNU_RELRO {
            relro.push(memory);
        } else if header.p_type(endian) == PT_LOAD {
            let bytes = header.data(endian, data).unwrap_or_default().len();
            let offset = usize::try_from(header.p_offset(endian)).unwrap_or(usize::MAX);
            parts.push(Part {
                memory,
                file: offset..offset.saturating_add(bytes),
                writable: flags.contains(PF_W),
                executable: flags.contains(PF_X),
            });
        }
    }
    (parts, relro)
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

impl<D: Deref<Target: AsRef<[u8]>>> Memory for Image<D> {
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let end = address.checked_add(length as u64)?;
        let part = self.part(address).filter(|part| end <= part.memory.end)?;
        let relro = || self.relro.iter().any(|r| r.start <= address && end <= r.end);
        if part.writable && !relro() {
            return None;
        }
        let of_file = self.of(part);
        // Beyond what the file has, memory is zero; more than a file's size is not asked for sensibly.
        if length > (*self.data).as_ref().len() {
            return None;
        }
        let offset = usize::try_from(address - part.memory.start).ok()?.min(of_file.len());
        let known = &of_file[offset..of_file.len().min(offset.saturating_add(length))];
        let mut bytes = known.to_vec();
        bytes.resize(length, 0);
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
        self.part(address).is_some_and(|part| part.executable)
    }

    fn returns(&self, callee: u64) -> bool {
        if self.no_return.is_empty() || self.no_return.contains(&callee) {
            return self.no_return.is_empty();
        }
        // A stub of the procedure linkage table: `endbr64` perhaps, then `jmp [rip+word]`.
        let Some(part) = self.part(callee) else { return true };
        let offset = usize::try_from(callee - part.memory.start).unwrap_or(usize::MAX);
        let code = self.of(part).get(offset..).unwrap_or_default();
        let mut decoder = Decoder::with_ip(64, code, callee, DecoderOptions::NONE);
        let jump = decoder.iter().take(2).find(|i| i.mnemonic() == Mnemonic::Jmp);
        let word = jump.filter(iced_x86::Instruction::is_ip_rel_memory_operand);
        !word.is_some_and(|jump| self.no_return.contains(&jump.ip_rel_memory_address()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(memory: Range<u64>, bytes: usize, writable: bool) -> Part {
        Part { memory, file: 0..bytes, writable, executable: false }
    }

    #[test]
    fn constants_are_read_relocated_and_variables_not() {
        let data: Vec<u8> = (0..0x28).collect();
        let image = Image {
            data: &data,
            parts: vec![part(0x1000..0x1028, 0x20, false), part(0x2000..0x2040, 0x20, true)],
            relro: std::iter::once(0x2000..0x2010).collect(),
            relocated: BTreeMap::from([(0x1008, Some(0x1122_3344_5566_7788)), (0x1018, None)]),
            no_return: HashSet::new(),
        };
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

    #[test]
    fn files_of_other_processors_are_none() {
        // An ELF header by hand (ELF specification, "ELF Header"): 64-bit, little endian, AArch64.
        let mut header = vec![0; 64];
        header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        (header[16], header[18], header[20]) = (2, 183, 1);
        (header[52], header[54], header[58]) = (64, 56, 64);
        let why = Image::new(&header).expect_err("not ours");
        assert!(why.contains("Aarch64, not x86-64"), "{why}");
    }
}
