//! Reads the unwind table of a file: positions of callers on the stack, and landing pads, where an exception
//! continues in a function, from the call-site tables that it refers to (Itanium C++ ABI, exception handling, level
//! II; "LSDA" in LSB 5.0, 11.6).

use super::names::contents;
use super::no_code::NoCode;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, Pointer, Register, RegisterRule, UnwindContext,
    UnwindSection as _,
};
use isa::elf::{Layout, unwind_bases, unwind_entries, unwind_table};
use isa::flow::Image;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// `DW_EH_PE_omit`.
const OMIT: u8 = 0xff;
/// `DW_EH_PE_pcrel`, in the upper four bits.
const RELATIVE: u8 = 0x10;

/// All landing pads of a file.
///
/// # Errors
/// A table cannot be read: a pad may be missing.
pub fn landing_pads(
    file: &object::File<'_>,
    image: &Image<Arc<Vec<u8>>>,
) -> Result<BTreeSet<u64>, NoCode> {
    let mut pads = BTreeSet::new();
    let (frames, bases) = (unwind_table(file).map_err(NoCode::Section)?, unwind_bases(file));
    for entry in unwind_entries(&frames, &bases) {
        let entry = entry.map_err(|_| NoCode::UnwindTable)?;
        let table = match entry.lsda() {
            None => continue,
            Some(Pointer::Direct(0)) => continue,
            Some(Pointer::Direct(address)) => address,
            Some(Pointer::Indirect(_)) => return Err(NoCode::IndirectExceptions),
        };
        let mut reader = Reader { bytes: image.rest(table), address: table };
        let found = reader.pads(entry.initial_address(), &mut pads);
        found.ok_or(NoCode::Exceptions(table))?;
    }
    Ok(pads)
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
    table: EhFrame<isa::elf::Reader>,
    bases: BaseAddresses,
    /// The segments of the file.
    pub layout: Layout,
}

impl Frames {
    /// Reads an ELF file; `None` if it is none that can be read.
    pub fn read(path: &Path) -> Option<Self> {
        let data = contents(path).ok()?;
        let file = object::File::parse(&*data).ok()?;
        let (table, bases) = (unwind_table(&file).ok()?, unwind_bases(&file));
        Some(Self { table, bases, layout: Layout::read(&*data).ok()? })
    }

    /// The frame at an instruction (p_vaddr); `None` if unknown or not of this form.
    pub fn at(&self, address: u64) -> Option<Frame> {
        let (mut context, cie) = (UnwindContext::new(), EhFrame::cie_from_offset);
        let row = self.table.unwind_info_for_address(&self.bases, &mut context, address, cie);
        let row = row.ok()?;
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
