//! Addresses that an instruction accesses, from the registers before it.

use crate::process::{Registers, Vectors};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Register, UsedMemory,
};
use std::ops::Range;

/// Longest instruction, in bytes (Intel SDM vol. 2, 2.3.11).
pub const LONGEST: usize = 15;
/// DF of rflags.
const DIRECTION: u64 = 1 << 10;

/// An instruction, and the memory that it uses.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The instruction, at its address in the process.
    pub instruction: Instruction,
    memory: Vec<UsedMemory>,
}

impl Decoded {
    /// The instruction in `bytes` at `address`; `None` if they do not decode.
    pub fn new(bytes: &[u8], address: u64, factory: &mut InstructionInfoFactory) -> Option<Self> {
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        let memory = factory.info(&instruction).used_memory().to_vec();
        Some(Self { instruction, memory })
    }

    /// Whether it is a call of a function.
    pub fn is_call(&self) -> bool {
        matches!(self.instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
    }

    /// Whether it is a call, or a jump to an address that its bytes do not give.
    pub fn goes_elsewhere(&self) -> bool {
        use FlowControl as F;
        let kind = self.instruction.flow_control();
        !matches!(kind, F::Next | F::ConditionalBranch | F::UnconditionalBranch)
    }

    /// Whether it is a jump, or a branch whose outcome depends on values.
    pub fn is_branch(&self) -> bool {
        use FlowControl as F;
        let kind = self.instruction.flow_control();
        matches!(kind, F::ConditionalBranch | F::IndirectBranch | F::UnconditionalBranch)
    }

    /// Addresses that may be executed next, if they do not depend on values; a call returns.
    pub fn continues_at(&self) -> Option<Vec<u64>> {
        use FlowControl as F;
        let (next, target) = (self.instruction.next_ip(), self.instruction.near_branch_target());
        match self.instruction.flow_control() {
            F::Next | F::Call | F::IndirectCall => Some(vec![next]),
            F::UnconditionalBranch => Some(vec![target]),
            F::ConditionalBranch => Some(vec![next, target]),
            _ => None,
        }
    }

    /// Whether it is a string instruction that repeats.
    pub fn repeats(&self) -> bool {
        let i = &self.instruction;
        i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix())
    }

    /// Whether it accesses an element of memory for each lane of a vector register.
    pub fn is_gather(&self) -> bool {
        self.instruction.is_vsib()
    }

    /// The accessed addresses; too many where a mask disables lanes or a repeated instruction ends
    /// early.
    pub fn accesses(&self, registers: &Registers, vectors: Option<&Vectors>) -> Vec<Range<u64>> {
        let mut all = Vec::new();
        for memory in &self.memory {
            // iced-x86 does not give the size of repeated accesses.
            let size =
                if self.repeats() { self.instruction.memory_size() } else { memory.memory_size() };
            let bytes = (size.size() as u64).max(1);
            for lane in 0..lanes(memory) {
                let value =
                    |register, element, size| value(register, registers, vectors, element, size);
                let Some(address) = memory.virtual_address(lane, value) else { continue };
                let count = if self.repeats() { registers.general[1] } else { 1 };
                let length = bytes.saturating_mul(count);
                all.push(if self.repeats() && registers.flags & DIRECTION != 0 {
                    let end = address.saturating_add(bytes);
                    end.saturating_sub(length)..end
                } else {
                    address..address.saturating_add(length)
                });
            }
        }
        all
    }
}

/// Number of addresses of an operand: one, or one per lane of its index register.
fn lanes(memory: &UsedMemory) -> usize {
    match memory.vsib_size() as usize {
        0 => 1,
        size => memory.index().size() / size,
    }
}

/// The value of a register, or the base of a segment register, in an address.
fn value(
    register: Register,
    registers: &Registers,
    vectors: Option<&Vectors>,
    element: usize,
    size: usize,
) -> Option<u64> {
    match register {
        Register::FS => return Some(registers.fs_base),
        Register::GS => return Some(registers.gs_base),
        // iced-x86 has added the instruction pointer to the displacement.
        r if r.is_segment_register() || r.is_ip() => return Some(0),
        _ => {}
    }
    if register.is_vector_register() {
        let bytes = vectors?.vectors.get(register.number())?;
        let lane = bytes.get(element * size..(element + 1) * size)?;
        let mut word = [0; 8];
        word[..size].copy_from_slice(lane);
        return Some(u64::from_le_bytes(word));
    }
    let whole = registers.general.get(register.full_register().number())?;
    Some(match register.size() {
        8 => *whole,
        4 => *whole & u64::from(u32::MAX),
        2 => *whole & u64::from(u16::MAX),
        // xlatb: al.
        _ => *whole & u64::from(u8::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accesses(bytes: &[u8], registers: &Registers) -> Vec<(u64, u64)> {
        let mut factory = InstructionInfoFactory::new();
        let vectors = Vectors {
            vectors: vec![std::array::from_fn(|at| if at % 4 == 0 { at as u8 / 4 } else { 0 }); 16],
            masks: vec![],
            mxcsr: 0,
            x87_control: 0,
            x87: vec![],
        };
        let decoded = Decoded::new(bytes, 0x40_1000, &mut factory).unwrap();
        let mut all: Vec<_> =
            decoded.accesses(registers, Some(&vectors)).iter().map(|r| (r.start, r.end)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn addresses_follow_from_the_registers() {
        let mut r = Registers { fs_base: 0x7000_0000, ..Registers::default() };
        (r.general[0], r.general[1], r.general[3]) = (0x10, 3, 0x1000);
        (r.general[4], r.general[6], r.general[7]) = (0x8000, 0x2000, 0x3000);
        // Encodings by GNU as; addresses by the definition of each addressing mode.
        for (bytes, expected) in [
            // mov rdx,[rbx+rax*8+16]
            (&[0x48, 0x8b, 0x54, 0xc3, 0x10][..], vec![(0x1090, 0x1098)]),
            // mov eax,[rip+0x100]
            (&[0x8b, 0x05, 0, 1, 0, 0], vec![(0x40_1106, 0x40_110a)]),
            // mov rax,fs:[0x28]
            (&[0x64, 0x48, 0x8b, 4, 0x25, 0x28, 0, 0, 0], vec![(0x7000_0028, 0x7000_0030)]),
            // push rbx
            (&[0x53], vec![(0x7ff8, 0x8000)]),
            // lea rax,[rbx]
            (&[0x48, 0x8d, 3], vec![]),
            // vgatherdps xmm0,[rbx+xmm1*4],xmm2
            (
                &[0xc4, 0xe2, 0x69, 0x92, 4, 0x8b],
                vec![(0x1000, 0x1004), (0x1004, 0x1008), (0x1008, 0x100c), (0x100c, 0x1010)],
            ),
        ] {
            assert_eq!(accesses(bytes, &r), expected, "{bytes:x?}");
        }
        // rep movsq: 3 words
        let repeated = accesses(&[0xf3, 0x48, 0xa5], &r);
        assert_eq!(repeated, [(0x2000, 0x2018), (0x3000, 0x3018)]);
        r.flags = DIRECTION;
        let backwards = accesses(&[0xf3, 0x48, 0xa5], &r);
        assert_eq!(backwards, [(0x1ff0, 0x2008), (0x2ff0, 0x3008)]);
    }
}
