//! Reads the parts of ELF files that several crates need: the program headers that the loader reads, the build-id
//! in the notes, and the entries of the unwind table.

use gimli::{
    BaseAddresses, CieOrFde, EhFrame, EndianArcSlice, FrameDescriptionEntry, RunTimeEndian,
    UnwindOffset, UnwindSection,
};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, FileKind, Object as _, ObjectSection as _, ReadRef, elf};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A segment of the file that is loaded into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file (p_offset).
    pub offset: u64,
    /// Bytes in the file (p_filesz).
    pub file_size: u64,
    /// Address in memory (p_vaddr).
    pub address: u64,
    /// Bytes in memory (p_memsz); those beyond the file's are zero.
    pub memory_size: u64,
    /// Whether the program may write to it.
    pub writable: bool,
    /// Whether it has code.
    pub executable: bool,
}

impl Segment {
    /// Its addresses.
    pub fn memory(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.memory_size)
    }

    /// The addresses of the bytes that the file has.
    pub fn in_file(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.file_size)
    }
}

/// Layout of a file in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// The segments, in the order of the file.
    pub segments: Vec<Segment>,
    /// Addresses that are read-only after relocation (PT_GNU_RELRO).
    pub relro: Vec<Range<u64>>,
    /// The id of the build that made it.
    pub build_id: Option<Vec<u8>>,
    /// `e_machine`.
    pub machine: u16,
}

/// Why a file has no layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLayout {
    /// It is no ELF file.
    NoElf,
    /// It is a damaged ELF file.
    Damaged(object::Error),
}

impl fmt::Display for NoLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoElf => f.write_str("it is not an ELF file"),
            Self::Damaged(error) => error.fmt(f),
        }
    }
}

impl From<object::Error> for NoLayout {
    fn from(error: object::Error) -> Self {
        Self::Damaged(error)
    }
}

/// `EM_386`, `EM_ARM`, `EM_X86_64` and `EM_AARCH64` of the ELF specification's processor supplements.
const I386: u16 = 3;
const ARM: u16 = 40;
const X86_64: u16 = 62;
const AARCH64: u16 = 183;

/// Page size that segments are rounded to; larger pages only widen the slack of a segment.
const PAGE: u64 = 4096;
/// Larger note segments are not searched for a build-id; no linker writes them.
const MOST_NOTES: u64 = 1 << 16;
/// Files with more sections are not searched for a build-id; debug files have some dozens.
const MOST_SECTIONS: u32 = 1 << 16;

impl Layout {
    /// Reads the headers of `data`.
    ///
    /// # Errors
    /// It is no ELF file, or a damaged one.
    pub fn read<'data, R: ReadRef<'data>>(data: R) -> Result<Self, NoLayout> {
        let kind = FileKind::parse(data).map_err(|_| NoLayout::NoElf)?;
        match kind {
            FileKind::Elf32 => Ok(layout::<elf::FileHeader32<Endianness>, R>(data)?),
            FileKind::Elf64 => Ok(layout::<elf::FileHeader64<Endianness>, R>(data)?),
            _ => Err(NoLayout::NoElf),
        }
    }

    /// Whether this file's programs run where `uname -m` is `architecture`; true for architectures
    /// unknown here.
    pub fn runs_on(&self, architecture: &str) -> bool {
        match architecture {
            "x86_64" | "i386" | "i486" | "i586" | "i686" => matches!(self.machine, X86_64 | I386),
            "aarch64" | "arm64" => matches!(self.machine, AARCH64 | ARM),
            _ if architecture.starts_with("arm") => self.machine == ARM,
            "riscv64" | "ppc64le" | "s390x" | "loongarch64" | "mips64" => {
                !matches!(self.machine, I386 | ARM | X86_64 | AARCH64)
            }
            _ => true,
        }
    }

    /// The address (p_vaddr) of `offset` in the file.
    ///
    /// A page of the file can be mapped twice, as the end of one segment and the start of the next:
    /// offsets in two segments belong to the executable one, offsets in none to the executable
    /// segment whose page they share.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let executable = || self.segments.iter().filter(|s| s.executable);
        let inside = |s: &&Segment| offset >= s.offset && offset - s.offset < s.file_size;
        let on_page = |s: &&Segment| {
            let end = s.offset.saturating_add(s.file_size).checked_next_multiple_of(PAGE);
            offset >= s.offset & !(PAGE - 1) && end.is_none_or(|end| offset < end)
        };
        let segment = executable()
            .find(inside)
            .or_else(|| self.segments.iter().find(inside))
            .or_else(|| executable().find(on_page))?;
        Some(offset.wrapping_sub(segment.offset).wrapping_add(segment.address))
    }

    /// The offset in the file of code at `address` (p_vaddr).
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        let inside = |s: &&Segment| address >= s.address && address - s.address < s.file_size;
        let segment = self.segments.iter().filter(|s| s.executable).find(inside)?;
        Some(address - segment.address + segment.offset)
    }
}

/// The layout of a file with a header of this size.
pub(crate) fn layout<'data, E, R>(data: R) -> object::Result<Layout>
where
    E: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = E::parse(data)?;
    let endian = header.endian()?;
    let mut layout = Layout { machine: header.e_machine(endian).0, ..Layout::default() };
    for program in header.program_headers(endian, data)? {
        let (offset, file_size) = program.file_range(endian);
        let address: u64 = program.p_vaddr(endian).into();
        let memory_size = program.p_memsz(endian).into();
        match program.p_type(endian) {
            elf::PT_LOAD => layout.segments.push(Segment {
                offset,
                file_size,
                address,
                memory_size,
                writable: program.p_flags(endian).contains(elf::PF_W),
                executable: program.p_flags(endian).contains(elf::PF_X),
            }),
            elf::PT_GNU_RELRO => layout.relro.push(address..address.saturating_add(memory_size)),
            elf::PT_NOTE if layout.build_id.is_none() && file_size <= MOST_NOTES => {
                layout.build_id = identity(program.notes(endian, data).ok().flatten(), endian);
            }
            _ => {}
        }
    }
    if layout.build_id.is_none() {
        layout.build_id = in_section(header, endian, data);
    }
    Ok(layout)
}

/// The build-id of a file without program headers, such as those that dwz writes.
fn in_section<'data, E, R>(header: &E, endian: Endianness, data: R) -> Option<Vec<u8>>
where
    E: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    if header.shnum(endian, data).ok()? > MOST_SECTIONS {
        return None;
    }
    let sections = header.sections(endian, data).ok()?;
    let (_, section) = sections.section_by_name(endian, b".note.gnu.build-id")?;
    let is_small = section.sh_size(endian).into() <= MOST_NOTES;
    identity(is_small.then(|| section.notes(endian, data).ok().flatten())?, endian)
}

/// The build-id among notes.
fn identity<E>(notes: Option<NoteIterator<'_, E>>, endian: Endianness) -> Option<Vec<u8>>
where
    E: FileHeader<Endian = Endianness>,
{
    let mut notes = notes.into_iter().flatten().map_while(Result::ok);
    let own = notes.find(|n| n.name() == b"GNU" && n.n_type(endian) == elf::NT_GNU_BUILD_ID);
    own.map(|note| note.desc().to_vec())
}

/// Contents of a section, shared.
pub type Reader = EndianArcSlice<RunTimeEndian>;

/// The contents `data` of a section of `file`.
pub fn reader(file: &object::File<'_>, data: &[u8]) -> Reader {
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    EndianArcSlice::new(Arc::from(data), endian)
}

/// The unwind table of a file (`.eh_frame`, which is loaded and so never compressed); empty where it has none.
///
/// # Errors
/// It is not in the file.
pub fn unwind_table(file: &object::File<'_>) -> object::Result<EhFrame<Reader>> {
    let section = file.section_by_name(".eh_frame");
    let data = section.map(|section| section.data()).transpose()?.unwrap_or_default();
    let mut table = EhFrame::from(reader(file, data));
    table.set_address_size(if file.is_64() { 8 } else { 4 });
    if file.architecture() == object::Architecture::Aarch64 {
        table.set_vendor(gimli::Vendor::AArch64);
    }
    Ok(table)
}

/// The entries of an unwind table, one per function; after one that is cut off, none.
pub fn unwind_entries<S: UnwindSection<Reader>>(
    table: &S,
    bases: &BaseAddresses,
) -> impl Iterator<Item = gimli::Result<FrameDescriptionEntry<Reader>>> {
    // Thousands share one, which may be long in a made file.
    let mut shared = HashMap::new();
    table.entries(bases).filter_map(move |entry| match entry {
        Err(error) => Some(Err(error)),
        Ok(CieOrFde::Cie(_)) => None,
        Ok(CieOrFde::Fde(partial)) => Some(partial.parse(|table, bases, offset| {
            let known = shared.entry(UnwindOffset::into(offset));
            Ok(match known {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(table.cie_from_offset(bases, offset)?),
            }
            .clone())
        })),
    })
}

/// The ranges of the unwind table, as far as it can be read: one per compiled function, also in stripped files. Not those of
/// signal trampolines: in glibc they begin a byte before the code, for unwinders that look up the byte before an address
/// (`sigaction.c`), so that decoding from there finds other instructions.
pub fn unwind_ranges(file: &object::File<'_>) -> Vec<Range<u64>> {
    let Ok(table) = unwind_table(file) else { return Vec::new() };
    let bases = unwind_bases(file);
    let entries = unwind_entries(&table, &bases).filter_map(Result::ok);
    let entries = entries.filter(|entry| !entry.is_signal_trampoline());
    let start_and_length = entries.map(|entry| (entry.initial_address(), entry.len()));
    start_and_length.map(|(start, length)| start..start.saturating_add(length)).collect()
}

/// Addresses of the sections that pointers in an unwind table may be relative to.
pub fn unwind_bases(file: &object::File<'_>) -> BaseAddresses {
    let address_of = |name| file.section_by_name(name).map_or(0, |section| section.address());
    BaseAddresses::default()
        .set_eh_frame(address_of(".eh_frame"))
        .set_text(address_of(".text"))
        .set_got(address_of(".got"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, file_size: u64, address: u64, executable: bool) -> Segment {
        let memory_size = file_size;
        Segment { offset, file_size, address, memory_size, writable: false, executable }
    }

    #[test]
    fn offsets_become_addresses_by_the_segment_that_holds_them() {
        // As lld does: segments are adjacent in the file and mapped a page apart.
        let layout = Layout {
            segments: vec![segment(0, 0x740, 0, false), segment(0x740, 0x5f0, 0x1740, true)],
            ..Layout::default()
        };
        assert_eq!(layout.address_of(0x740), Some(0x1740));
        assert_eq!(layout.address_of(0xa6e), Some(0x1a6e));
        assert_eq!(layout.address_of(0x10), Some(0x10));
        // After the segment's end, on its page.
        assert_eq!(layout.address_of(0xd40), Some(0x1d40));
        assert_eq!(layout.address_of(0x1000), None);
    }
}
