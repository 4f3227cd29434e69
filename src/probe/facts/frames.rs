//! Positions of callers on the stack, from a file's unwind table (`.eh_frame`).

use super::names::contents;
use super::no_code::NoCode;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection as _,
};
use object::elf::PT_LOAD;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _};
use std::ops::Range;
use std::path::Path;

/// DWARF's numbers of registers (System V ABI, AMD64, 3.6.2).
const RBP: Register = Register(6);
const RSP: Register = Register(7);

/// Base register of the address of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The stack pointer.
    Stack,
    /// The frame pointer, rbp.
    Frame,
}

/// The frame at an instruction. Its canonical address (CFA) is that of the word above the return
/// address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Register of the canonical address.
    pub base: Base,
    /// Distance from `base` to the canonical address.
    pub distance: i64,
    /// Offset of the caller's rbp from the canonical address; `None`: rbp is unchanged.
    pub saved: Option<i64>,
}

/// The unwind table of a file.
pub struct Frames {
    table: Vec<u8>,
    bases: BaseAddresses,
    /// Offsets in the file, and the address (p_vaddr) of the first.
    segments: Vec<(Range<u64>, u64)>,
}

impl Frames {
    /// Reads a file.
    ///
    /// # Errors
    /// It is no ELF file of 64 bits.
    pub fn read(path: &Path) -> Result<Self, NoCode> {
        let data = contents(path)?;
        let elf = ElfFile64::<Endianness>::parse(&*data).map_err(NoCode::Damaged)?;
        let endian = elf.endian();
        let loaded = elf.elf_program_headers().iter().filter(|h| h.p_type(endian) == PT_LOAD);
        let segments = loaded.map(|header| {
            let offset = header.p_offset(endian);
            (offset..offset.saturating_add(header.p_filesz(endian)), header.p_vaddr(endian))
        });
        let section = elf.section_by_name(".eh_frame");
        let table = section.as_ref().and_then(|s| s.uncompressed_data().ok()).unwrap_or_default();
        let address_of = |name| elf.section_by_name(name).map_or(0, |section| section.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(section.map_or(0, |section| section.address()))
            .set_text(address_of(".text"))
            .set_got(address_of(".got"));
        Ok(Self { table: table.into_owned(), bases, segments: segments.collect() })
    }

    /// The address (p_vaddr) of an offset of the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let (range, start) = self.segments.iter().find(|(range, _)| range.contains(&offset))?;
        start.checked_add(offset - range.start)
    }

    /// The frame at an instruction (p_vaddr); `None` if unknown or not of this form.
    pub fn at(&self, address: u64) -> Option<Frame> {
        let mut frames = EhFrame::new(&self.table, LittleEndian);
        frames.set_address_size(8);
        let mut context = UnwindContext::new();
        let cie = EhFrame::cie_from_offset;
        let row = frames.unwind_info_for_address(&self.bases, &mut context, address, cie).ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        let base = match register {
            RSP => Base::Stack,
            RBP => Base::Frame,
            _ => return None,
        };
        let saved = match row.register(RBP) {
            Some(RegisterRule::Offset(offset)) => Some(offset),
            _ => None,
        };
        Some(Frame { base, distance: offset, saved })
    }
}
