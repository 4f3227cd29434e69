//! State that the tracing code stored around one instruction of one copy: registers, and selected mask elements.

use crate::harness::tracing::{Slot, mask};
use crate::sandbox::layout as at;
use iced_x86::Register;
use isa::code::Inst;

/// Registers stored around one instruction of one copy.
pub(super) struct Stored<'a> {
    pub(super) slots: &'a [Slot],
    pub(super) bytes: &'a [u8],
}

impl Stored<'_> {
    pub(super) fn bytes(&self, register: Register, after: bool) -> Option<&[u8]> {
        let slot = self.slots.iter().find(|s| s.register == register && s.after == after)?;
        self.bytes.get(slot.at..slot.at + Slot::size(register))
    }

    pub(super) fn number(&self, register: Register, after: bool) -> Option<u64> {
        Some(little_endian(self.bytes(register.full_register(), after)?, register.size()))
    }

    /// Element `index` of a vector register, of `size` bytes.
    pub(super) fn element(&self, register: Register, index: usize, size: usize) -> Option<u64> {
        let number = register.number() as u32;
        let whole = self
            .bytes(Register::YMM0 + number, false)
            .or_else(|| self.bytes(Register::ZMM0 + number, false))?;
        Some(little_endian(whole.get(index * size..)?, size))
    }

    /// The value of a register in an address; segment bases are the sandbox's.
    pub(super) fn value(&self, register: Register, element: usize, size: usize) -> Option<u64> {
        match register {
            Register::FS => Some(at::FS_BASE),
            Register::GS => Some(at::GS_BASE),
            Register::DS | Register::ES | Register::CS | Register::SS => Some(0),
            r if r.is_vector_register() => self.element(r, element, size),
            r if r.is_gpr() => self.number(r, false),
            _ => None,
        }
    }
}

/// A number of at most eight bytes.
pub(super) fn little_endian(bytes: &[u8], size: usize) -> u64 {
    bytes.iter().take(size.min(8)).rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The elements that an instruction's mask selects, a bit each; `None` if the mask was not traced.
pub(super) fn selected(inst: &Inst, stored: &Stored<'_>) -> Option<u64> {
    let mask = mask(inst)?;
    if mask.is_k() {
        let all = little_endian(stored.bytes(mask, false)?, 8);
        // The operand of gathers and broadcasts is one element.
        return Some(match inst.decoded.memory_size().element_count() {
            count @ 2..64 => all & ((1 << count) - 1),
            _ => all,
        });
    }
    let element = match inst.memory.iter().find(|m| m.index().is_vector_register()) {
        Some(memory) => memory.memory_size().size(),
        None if inst.text.contains("maskmovdqu") => 1,
        None => inst.decoded.memory_size().element_size(),
    };
    let sign = |lane: usize| Some(stored.element(mask, lane, element)? >> (8 * element - 1) & 1);
    (0..mask.size() / element.max(1)).try_fold(0, |all, lane| Some(all | sign(lane)? << lane))
}
