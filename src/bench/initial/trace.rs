//! Reads an address trace: the registers that the tracing code stored before and after each
//! instruction, and the memory accesses that follow from them.

use crate::harness::{Slot, bit_index, mask, repeats};
use crate::sandbox::layout as at;
use iced_x86::{Mnemonic, Register, UsedMemory};
use isa::code::{Block, Inst};

/// One access of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Copy, from 0.
    pub copy: usize,
    /// Instruction, from 0.
    pub instruction: usize,
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Whether it reads.
    pub reads: bool,
    /// Whether it writes.
    pub writes: bool,
}

impl Access {
    /// The lines it touches, by number.
    pub fn lines(&self) -> std::ops::RangeInclusive<u64> {
        self.address / 64..=self.address.saturating_add(self.size.max(1) - 1) / 64
    }

    /// Whether it spans more than one cache line.
    pub fn crosses_line(&self) -> bool {
        self.size > 0 && self.address % 64 + self.size > 64
    }

    /// Whether it touches a page.
    pub fn touches(&self, page: u64) -> bool {
        let last = self.address.saturating_add(self.size.max(1) - 1);
        self.address / 4096 <= page / 4096 && page / 4096 <= last / 4096
    }
}

/// The accesses of a trace, with `[rip+x]` relative to `rip`; `false` if some cannot be
/// reconstructed.
pub fn accesses(
    block: &Block,
    slots: &[Slot],
    bytes: &[u8],
    copies: usize,
    rip: u64,
) -> (Vec<Access>, bool) {
    let (mut all, mut complete) = (Vec::with_capacity(slots.len()), true);
    let mut ranges = Vec::new();
    // The reconstruction of repeated string instructions assumes ascending addresses.
    let downwards = block.instructions.iter().any(|i| i.decoded.mnemonic() == Mnemonic::Std);
    each(block, slots, bytes, copies, |copy, instruction, inst, stored| {
        ranges.clear();
        let known = add_accesses(inst, stored, rip, &mut ranges).is_some();
        if !known || downwards && repeats(inst) {
            complete = false;
            return;
        }
        all.extend(ranges.iter().map(|&(memory, address, size)| {
            let access = UsedMemory::access(memory);
            let (reads, writes) = (Inst::reads(access), Inst::writes(access));
            Access { copy, instruction, address, size, reads, writes }
        }));
    });
    (all, complete)
}

/// Calls `see` with every instruction of every copy, by their numbers, and what was stored around it.
pub(super) fn each<'a>(
    block: &'a Block,
    slots: &'a [Slot],
    bytes: &'a [u8],
    copies: usize,
    mut see: impl FnMut(usize, usize, &'a Inst, &Stored<'a>),
) {
    let mut next = 0;
    for copy in 0..copies {
        for (instruction, inst) in block.instructions.iter().enumerate() {
            let own = |s: &&Slot| (s.copy, s.instruction) == (copy, instruction);
            let count = slots[next..].iter().take_while(own).count();
            let stored = Stored { slots: &slots[next..next + count], bytes };
            next += count;
            see(copy, instruction, inst, &stored);
        }
    }
}

/// Addresses and sizes that one instruction of one copy accessed; the trace must reach it.
pub fn accesses_of(
    block: &Block,
    slots: &[Slot],
    bytes: &[u8],
    position: (usize, usize),
    rip: u64,
) -> Vec<(u64, u64)> {
    let first = slots.partition_point(|s| (s.copy, s.instruction) < position);
    let last = slots.partition_point(|s| (s.copy, s.instruction) <= position);
    let stored = Stored { slots: &slots[first..last], bytes };
    let inst = &block.instructions[position.1];
    let known = inst.memory.iter().filter_map(|m| {
        (touches(m) && !repeats(inst)).then_some(())?;
        Some((plain(inst, m, &stored, rip)?, m.memory_size().size() as u64))
    });
    known.collect()
}

fn touches(memory: &UsedMemory) -> bool {
    Inst::reads(memory.access()) || Inst::writes(memory.access())
}

/// Operand, first byte and size of an access.
type Range<'a> = (&'a UsedMemory, u64, u64);

/// Adds every access of an instruction to `found`; `None` if one cannot be reconstructed.
fn add_accesses<'a>(
    inst: &'a Inst,
    stored: &Stored<'_>,
    rip: u64,
    found: &mut Vec<Range<'a>>,
) -> Option<()> {
    for memory in inst.memory.iter().filter(|m| touches(m)) {
        let size = memory.memory_size().size() as u64;
        if memory.index().is_vector_register() {
            for address in lanes(inst, memory, stored)? {
                found.push((memory, address, size));
            }
            continue;
        }
        let address = plain(inst, memory, stored, rip)?;
        if repeats(inst) {
            found.extend(repeated(inst, address, stored)?.into_iter().map(|(a, s)| (memory, a, s)));
        } else {
            found.push((memory, address, size));
        }
    }
    Some(())
}

/// The address of an operand without vector index.
pub(super) fn plain(
    inst: &Inst,
    memory: &UsedMemory,
    stored: &Stored<'_>,
    rip: u64,
) -> Option<u64> {
    let redirected = inst.rip_displacement.is_some() && memory.base() == Register::None;
    if redirected {
        let low = inst.decoded.ip_rel_memory_address() as i64 & at::RIP_MASK;
        let target = rip + low as u64;
        // `[eip+x]` has no more than 32 bits.
        let short = inst.decoded.memory_base() == Register::EIP;
        return Some(if short { target & 0xffff_ffff } else { target });
    }
    let address = memory.virtual_address(0, |r, element, size| stored.value(r, element, size))?;
    let Some(register) = bit_index(inst) else { return Some(address) };
    let size = register.size();
    let bit = stored.number(register, false)?;
    let bit = (bit << (64 - 8 * size)) as i64 >> (64 - 8 * size);
    let unit = 8 * size as i64;
    Some(address.wrapping_add((bit.div_euclid(unit) * size as i64) as u64))
}

/// The range that a repeated string instruction accessed, from the change of `rcx`, split by cache
/// line after the element that ends it.
fn repeated(inst: &Inst, address: u64, stored: &Stored<'_>) -> Option<Vec<(u64, u64)>> {
    let before = stored.number(Register::RCX, false)?;
    let count = before.wrapping_sub(stored.number(Register::RCX, true)?);
    let element = (inst.decoded.memory_size().size() as u64).max(1);
    let end = address.checked_add(count.checked_mul(element)?)?;
    // More than the largest number of pages cannot have been touched.
    if end - address > (at::PAGES_MAX * at::PAGE) as u64 {
        return None;
    }
    let mut pieces = Vec::new();
    let mut next = address;
    while next < end {
        let line_end = (next / 64 + 1) * 64;
        let size = ((line_end - next).div_ceil(element) * element).min(end - next);
        pieces.push((next, size));
        next += size;
    }
    Some(pieces)
}

/// The addresses of the active lanes of a gather or scatter.
fn lanes(inst: &Inst, memory: &UsedMemory, stored: &Stored<'_>) -> Option<Vec<u64>> {
    let active = selected(inst, stored)?;
    let all = all_lanes(inst, memory, stored)?;
    Some(all.into_iter().enumerate().filter(|(n, _)| active >> n & 1 == 1).map(|l| l.1).collect())
}

/// The addresses of all lanes of a gather or scatter, those that its mask leaves out, too.
pub(super) fn all_lanes(inst: &Inst, memory: &UsedMemory, stored: &Stored<'_>) -> Option<Vec<u64>> {
    let decoded = &inst.decoded;
    let vector = [decoded.op0_register(), decoded.op1_register()]
        .into_iter()
        .find(|r| r.is_vector_register())?;
    let index_size = if decoded.is_vsib64() { 8 } else { 4 };
    let elements = vector.size() / memory.memory_size().size();
    let count = elements.min(memory.index().size() / index_size);
    (0..count).map(|lane| memory.virtual_address(lane, |r, e, s| stored.value(r, e, s))).collect()
}

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
fn little_endian(bytes: &[u8], size: usize) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hex: &str) -> Block {
        Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap()
    }

    /// The accesses of one copy of a one-instruction block, given its registers.
    fn traced(hex: &str, values: &[(Register, bool, &[u64])]) -> Option<Vec<(u64, u64)>> {
        let block = block(hex);
        let (mut slots, mut bytes) = (Vec::new(), Vec::new());
        for (register, after, words) in values {
            let at = bytes.len();
            slots.push(Slot { copy: 0, instruction: 0, register: *register, after: *after, at });
            words.iter().for_each(|w| bytes.extend(w.to_le_bytes()));
        }
        let (all, complete) = accesses(&block, &slots, &bytes, 1, 0x5000_0100_0000);
        complete.then(|| all.iter().map(|a| (a.address, a.size)).collect())
    }

    // Effective addresses by the instruction's page in Intel's manual, volume 2.
    #[test]
    fn a_bit_offset_moves_the_address_in_both_directions() {
        use Register::{RAX, RDI};
        let bt = |rax: u64| traced("480fa307", &[(RDI, false, &[0x1000]), (RAX, false, &[rax])]);
        assert_eq!(bt(63), Some(vec![(0x1000, 8)]));
        assert_eq!(bt(64), Some(vec![(0x1008, 8)]));
        assert_eq!(bt(-1i64 as u64), Some(vec![(0xff8, 8)]));
    }

    #[test]
    fn a_repeated_string_instruction_runs_as_far_as_its_counter_went() {
        use Register::{RCX, RDI};
        let values: &[(Register, bool, &[u64])] =
            &[(RDI, false, &[0x1000]), (RCX, false, &[5]), (RCX, true, &[0])];
        assert_eq!(traced("f3ab", values), Some(vec![(0x1000, 20)]));
    }

    #[test]
    fn a_gather_touches_its_active_lanes() {
        // vpgatherdd xmm1,[rdi+xmm2*4],xmm3 with lanes 0 and 2 active
        let (ymm2, ymm3) = (Register::YMM2, Register::YMM3);
        let values: &[(Register, bool, &[u64])] = &[
            (Register::RDI, false, &[0x1000]),
            (ymm2, false, &[0x0000_0007_0000_0001, 0x0000_0000_ffff_ffff, 0, 0]),
            (ymm3, false, &[0x0000_0000_8000_0000, 0x0000_0000_ffff_ffff, 0, 0]),
        ];
        assert_eq!(traced("c4e261900c97", values), Some(vec![(0x1004, 4), (0xffc, 4)]));
    }

    #[test]
    fn translation_and_short_addresses_use_only_their_part_of_a_register() {
        use Register::{RAX, RBX};
        let values: &[(Register, bool, &[u64])] =
            &[(RBX, false, &[0x1000]), (RAX, false, &[0xffff_ff05])];
        assert_eq!(traced("d7", values), Some(vec![(0x1005, 1)]));
        let values: &[(Register, bool, &[u64])] = &[(RBX, false, &[0x1_0000_2000])];
        assert_eq!(traced("678b03", values), Some(vec![(0x2000, 4)]));
        // mov eax,[eip+0]
        assert_eq!(traced("678b0500000000", &[]), Some(vec![(0x100_0007, 4)]));
    }
}
