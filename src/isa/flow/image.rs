//! The memory of a program as its ELF file defines it: code and data that is read-only at run time, with relocations
//! applied.
//!
//! Both `FILE:FUNCTION+N` and the hot blocks of a recording are resolved on this image, so they agree
//! on the blocks.
//!
//! Some functions are known by name never to return. Compilers emit no code after a call of one, so the bytes that
//! follow do not belong to the caller's path.

use crate::elf::{Layout, Segment, layout};
use crate::names::name;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::elf::{FileHeader64, R_X86_64_64, R_X86_64_RELATIVE};
use object::read::elf::ElfFile64;
use object::{
    Architecture, Endianness, Object as _, ObjectSymbol as _, ObjectSymbolTable as _, ReadRef as _,
    RelocationFlags, RelocationTarget,
};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Deref;

/// The program's memory as loaded: what the analysis may read apart from the function's own code.
pub trait Memory {
    /// `length` bytes at `address` (p_vaddr), with relocations applied; `None` if the memory is not
    /// mapped or writable.
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>>;

    /// Whether `address`, outside the function, may be a jump target.
    fn is_code(&self, address: u64) -> bool {
        self.read(address, 1).is_some()
    }

    /// Whether a call of the function at `callee` returns; false only if it is known not to
    /// (`abort`), so that the code after the call is not reached.
    fn returns(&self, callee: u64) -> bool {
        let _ = callee;
        true
    }
}

/// No memory, so that no jump table can be read.
impl Memory for () {
    fn read(&self, _: u64, _: usize) -> Option<Vec<u8>> {
        None
    }
}

/// The program's memory as if loaded at 0, with those relocations applied whose values the file
/// determines. Addresses are p_vaddr. `D` holds the file's bytes, borrowed or shared.
#[derive(Debug)]
pub struct Image<D> {
    data: D,
    /// Its segments; those whose bytes the file lacks have none.
    pub layout: Layout,
    /// Words that the dynamic linker writes; `None` if the file does not determine the value.
    relocated: BTreeMap<u64, Option<u64>>,
    /// Addresses of functions that never return, and of words that the dynamic linker points to such
    /// functions.
    no_return: HashSet<u64>,
}

/// Why a file is no program whose memory is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoImage {
    /// It is one of 32 bits.
    Narrow,
    /// It is no ELF file of 64 bits.
    NoElf(object::Error),
    /// It is for this architecture.
    Other(Architecture),
}

impl fmt::Display for NoImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Narrow => {
                f.write_str("it is a 32-bit program, and only code of x86-64 is analysed")
            }
            Self::NoElf(error) => write!(f, "it is not a 64-bit ELF file: {error}"),
            Self::Other(architecture) => {
                write!(f, "its architecture is {}, not x86-64", name(*architecture))
            }
        }
    }
}

impl<D: Deref<Target: AsRef<[u8]>>> Image<D> {
    /// Reads a 64-bit x86 ELF file; parts of it that cannot be read are treated as absent.
    ///
    /// # Errors
    /// `data` is not such a file.
    pub fn new(data: D) -> Result<Self, NoImage> {
        // ELF gABI, ELF header: the byte after the magic number is the class, 1 for 32 bits.
        if (*data).as_ref().starts_with(b"\x7fELF\x01") {
            return Err(NoImage::Narrow);
        }
        let file = ElfFile64::<Endianness>::parse((*data).as_ref()).map_err(NoImage::NoElf)?;
        if file.architecture() != Architecture::X86_64 {
            return Err(NoImage::Other(file.architecture()));
        }
        let layout = layout::<FileHeader64<Endianness>, _>((*data).as_ref());
        let mut layout = layout.map_err(NoImage::NoElf)?;
        // Relocations are found through sections; without them, the values of RELRO words are unknown.
        if file.sections().next().is_none() {
            layout.relro.clear();
        }
        for segment in &mut layout.segments {
            if file.data().read_bytes_at(segment.offset, segment.file_size).is_err() {
                segment.file_size = 0;
            }
        }
        let (relocated, no_return) = (relocated(&file), no_return(&file));
        Ok(Self { data, layout, relocated, no_return })
    }

    /// The bytes of executable code from `start` to `end`; `None` unless a single segment has them all.
    pub fn code(&self, start: u64, end: u64) -> Option<&[u8]> {
        let length = end.checked_sub(start)?;
        let executable = self.layout.segments.iter().filter(|segment| segment.executable);
        executable.filter_map(|segment| self.bytes(segment, start, length)).next()
    }

    /// `length` bytes at `address` of a segment, as far as the file has them.
    fn bytes(&self, segment: &Segment, address: u64, length: u64) -> Option<&[u8]> {
        let offset = usize::try_from(address.checked_sub(segment.address)?).ok()?;
        let end = offset.checked_add(usize::try_from(length).ok()?)?;
        self.of(segment).get(offset..end)
    }

    /// The file's bytes of a segment.
    pub fn of(&self, segment: &Segment) -> &[u8] {
        let data = (*self.data).as_ref();
        data.read_bytes_at(segment.offset, segment.file_size).unwrap_or_default()
    }

    /// The file's bytes from an address to the end of its segment.
    pub fn rest(&self, address: u64) -> &[u8] {
        let Some(segment) = self.segment(address) else { return &[] };
        let offset = usize::try_from(address - segment.address).unwrap_or(usize::MAX);
        self.of(segment).get(offset..).unwrap_or_default()
    }

    fn segment(&self, address: u64) -> Option<&Segment> {
        self.layout.segments.iter().find(|segment| segment.memory().contains(&address))
    }
}

/// The words that dynamic relocations write, with their values.
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

/// Addresses of functions in the file that never return, and of words relocated to such functions of
/// other files.
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
        let segment = self.segment(address).filter(|segment| end <= segment.memory().end)?;
        let relro = || self.layout.relro.iter().any(|r| r.start <= address && end <= r.end);
        if segment.writable && !relro() {
            return None;
        }
        let of_file = self.of(segment);
        // Memory beyond the file's bytes is zero. Requests larger than the file are not legitimate.
        if length > (*self.data).as_ref().len() {
            return None;
        }
        let offset = usize::try_from(address - segment.address).ok()?.min(of_file.len());
        let known = &of_file[offset..of_file.len().min(offset.saturating_add(length))];
        let mut bytes = known.to_vec();
        bytes.resize(length, 0);
        for (&at, value) in self.relocated.range(address.saturating_sub(7)..end) {
            let value = (*value)?;
            for (offset, byte) in value.to_le_bytes().into_iter().enumerate() {
                let offset = at.wrapping_add(offset as u64).wrapping_sub(address);
                if let Some(target) = usize::try_from(offset).ok().and_then(|p| bytes.get_mut(p)) {
                    *target = byte;
                }
            }
        }
        Some(bytes)
    }

    fn is_code(&self, address: u64) -> bool {
        self.segment(address).is_some_and(|segment| segment.executable)
    }

    fn returns(&self, callee: u64) -> bool {
        if self.no_return.is_empty() || self.no_return.contains(&callee) {
            return self.no_return.is_empty();
        }
        // A stub of the procedure linkage table: optionally `endbr64`, then `jmp [rip+word]`.
        let mut decoder = Decoder::with_ip(64, self.rest(callee), callee, DecoderOptions::NONE);
        let jump = decoder.iter().take(2).find(|i| i.mnemonic() == Mnemonic::Jmp);
        let word = jump.filter(iced_x86::Instruction::is_ip_rel_memory_operand);
        !word.is_some_and(|jump| self.no_return.contains(&jump.ip_rel_memory_address()))
    }
}

/// Functions of the C and C++ standard libraries, compiler runtimes, and err(3).
const NAMES: [&str; 30] = [
    "_Exit",
    "_Unwind_Resume",
    "_ZSt9terminatev",
    "__assert_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_unexpected",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__longjmp_chk",
    "__stack_chk_fail",
    "_exit",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
];

/// Whether the function `name`, mangled as in the symbol table, never returns.
fn never_returns(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let name = name.split('@').next().unwrap_or(name);
    NAMES.binary_search_by(|known| known.as_bytes().cmp(name.as_bytes())).is_ok()
        || (name.starts_with("_ZSt") && name.contains("__throw_"))
        || (name.starts_with("_ZN4core") && name.contains("9panicking"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    fn segment(memory: Range<u64>, bytes: u64, writable: bool) -> Segment {
        let (address, memory_size) = (memory.start, memory.end - memory.start);
        Segment { offset: 0, file_size: bytes, address, memory_size, writable, executable: false }
    }

    #[test]
    fn read_only_data_is_relocated_and_writable_data_is_not_read() {
        let data: Vec<u8> = (0..0x28).collect();
        let image = Image {
            data: &data,
            layout: Layout {
                segments: vec![
                    segment(0x1000..0x1028, 0x20, false),
                    segment(0x2000..0x2040, 0x20, true),
                ],
                relro: std::iter::once(0x2000..0x2010).collect(),
                ..Layout::default()
            },
            relocated: BTreeMap::from([(0x1008, Some(0x1122_3344_5566_7788)), (0x1018, None)]),
            no_return: HashSet::new(),
        };
        assert_eq!(image.read(0x1000, 4), Some(vec![0, 1, 2, 3]));
        assert_eq!(image.read(0x1006, 4), Some(vec![6, 7, 0x88, 0x77]));
        assert_eq!(image.read(0x100e, 4), Some(vec![0x22, 0x11, 0x10, 0x11]));
        assert_eq!(image.read(0x1018, 4), None, "the value is known only at load time");
        assert_eq!(image.read(0x1020, 8), Some(vec![0; 8]), "beyond the file");
        assert_eq!(image.read(0x1024, 8), None, "beyond the segment");
        assert_eq!(image.read(0x2000, 2), Some(vec![0, 1]), "read-only after relocation");
        assert_eq!(image.read(0x2010, 2), None, "writable");
        assert_eq!(image.read(u64::MAX, 2), None);
    }

    #[test]
    fn files_for_other_architectures_are_rejected() {
        // A hand-written ELF header (ELF specification, "ELF Header"): 64-bit, little endian, AArch64.
        let mut header = vec![0; 64];
        header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        (header[16], header[18], header[20]) = (2, 183, 1);
        (header[52], header[54], header[58]) = (64, 56, 64);
        let why = Image::new(&header).expect_err("an AArch64 file");
        assert_eq!(why, NoImage::Other(Architecture::Aarch64));
        assert_eq!(why.to_string(), "its architecture is Aarch64, not x86-64");
    }

    #[test]
    fn names_are_sorted_and_found() {
        assert!(NAMES.is_sorted_by_key(|n| n.as_bytes()));
        for name in ["abort", "_ZSt20__throw_length_errorPKc", "exit@GLIBC_2.2.5"] {
            assert!(never_returns(name.as_bytes()), "{name}");
        }
        assert!(!never_returns(b"exits") && !never_returns(b"_ZSt4sortv"));
    }
}
