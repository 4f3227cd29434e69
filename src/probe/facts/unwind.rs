//! Reads the unwind table of a file: positions of callers on the stack, and landing pads, where an exception
//! continues in a function, from the call-site tables that it refers to (Itanium C++ ABI, exception handling, level
//! II; "LSDA" in LSB 5.0, 11.6).

use super::names::contents;
use super::no_code::NoCode;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, LittleEndian, Pointer, Register, RegisterRule,
    UnwindContext, UnwindSection as _,
};
use object::elf::PT_LOAD;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Endianness, Object, ObjectSection as _};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

/// `DW_EH_PE_omit`.
const OMIT: u8 = 0xff;
/// `DW_EH_PE_pcrel`, in the upper four bits.
const RELATIVE: u8 = 0x10;

/// All landing pads of a file. `bytes` returns the file's bytes from an address on.
///
/// # Errors
/// A table cannot be read: a pad may be missing.
pub fn landing_pads<'d>(
    file: &object::File<'d>,
    bytes: &dyn Fn(u64) -> &'d [u8],
) -> Result<BTreeSet<u64>, NoCode> {
    let mut pads = BTreeSet::new();
    let Some(section) = file.section_by_name(".eh_frame") else { return Ok(pads) };
    let unreadable = |_| NoCode::UnwindTable;
    let data = section.uncompressed_data().map_err(NoCode::Section)?;
    let mut frames = EhFrame::new(&data, LittleEndian);
    frames.set_address_size(8);
    let bases = bases(file);
    let mut entries = frames.entries(&bases);
    while let Some(entry) = entries.next().map_err(unreadable)? {
        let CieOrFde::Fde(partial) = entry else { continue };
        let entry = partial.parse(EhFrame::cie_from_offset).map_err(unreadable)?;
        let table = match entry.lsda() {
            None => continue,
            Some(Pointer::Direct(0)) => continue,
            Some(Pointer::Direct(address)) => address,
            Some(Pointer::Indirect(_)) => return Err(NoCode::IndirectExceptions),
        };
        let mut reader = Reader { bytes: bytes(table), address: table };
        let found = reader.pads(entry.initial_address(), &mut pads);
        found.ok_or(NoCode::Exceptions(table))?;
    }
    Ok(pads)
}

/// Addresses of sections that pointers in the unwind table are relative to.
fn bases<'d>(file: &impl Object<'d>) -> BaseAddresses {
    let address_of = |name| file.section_by_name(name).map_or(0, |section| section.address());
    BaseAddresses::default()
        .set_eh_frame(address_of(".eh_frame"))
        .set_text(address_of(".text"))
        .set_got(address_of(".got"))
}

struct Reader<'a> {
    bytes: &'a [u8],
    address: u64,
}

impl Reader<'_> {
    /// Adds the landing pads of one function that begins at `start`.
    fn pads(&mut self, start: u64, pads: &mut BTreeSet<u64>) -> Option<()> {
        let encoding = self.byte()?;
        let base = if encoding == OMIT { start } else { self.pointer(encoding)? };
        let types = self.byte()?;
        if types != OMIT {
            self.unsigned()?;
        }
        let encoding = self.byte()?;
        let length = self.unsigned()?;
        let end = self.address.checked_add(length)?;
        while self.address < end {
            self.value(encoding)?;
            self.value(encoding)?;
            let pad = self.value(encoding)?;
            self.unsigned()?;
            if pad != 0 {
                pads.insert(base.wrapping_add(pad));
            }
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        (self.bytes, self.address) = (rest, self.address + 1);
        Some(*first)
    }

    fn pointer(&mut self, encoding: u8) -> Option<u64> {
        let place = self.address;
        let value = self.value(encoding & 0xf)?;
        match encoding & 0xf0 {
            0 => Some(value),
            RELATIVE => Some(value.wrapping_add(place)),
            _ => None,
        }
    }

    fn value(&mut self, encoding: u8) -> Option<u64> {
        match encoding {
            0x00 | 0x04 | 0x0c => self.word(8),
            0x01 => self.unsigned(),
            0x02 => self.word(2),
            0x03 => self.word(4),
            0x0a => Some((self.word(2)? as u16).cast_signed() as u64),
            0x0b => Some((self.word(4)? as u32).cast_signed() as u64),
            _ => None,
        }
    }

    fn word(&mut self, length: u32) -> Option<u64> {
        (0..length).try_fold(0, |word, at| Some(word | u64::from(self.byte()?) << (8 * at)))
    }

    /// ULEB128.
    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for at in 0..10 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * at).min(63);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

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
        Ok(Self { table: table.into_owned(), bases: bases(&elf), segments: segments.collect() })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_of_a_table_by_hand() {
        // No base, no types, ULEB128 call sites: (4, 5) without a pad, (0x10, 5) with 0x85 as pad.
        let table = [0xff, 0xff, 0x01, 9, 4, 5, 0, 0, 0x10, 5, 0x85, 0x01, 1];
        let mut pads = BTreeSet::new();
        let mut reader = Reader { bytes: &table, address: 0x2000 };
        assert_eq!(reader.pads(0x1000, &mut pads), Some(()));
        assert_eq!(pads, BTreeSet::from([0x1085]));
        let mut cut = Reader { bytes: &table[..7], address: 0x2000 };
        assert_eq!(cut.pads(0x1000, &mut pads), None);
    }
}
