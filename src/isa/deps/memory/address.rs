//! Precomputed address expressions.

use crate::effects::Access;
use crate::names::name;
use iced_x86::{Instruction, OpKind, Register};

/// Register number for no register.
const NONE: u8 = 255;
/// Lane number for no vector index.
const NO_LANE: u8 = 255;

/// A memory access with its address expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    base: u8,
    index: u8,
    shift: u8,
    lane: u8,
    /// Bytes per element of a vector index.
    element: u8,
    /// 1 for `fs`, 2 for `gs`.
    segment: u8,
    wide: bool,
    displacement: u64,
    /// Access size in bytes; 0 if unknown.
    pub bytes: u32,
    /// Whether it loads.
    pub load: bool,
    /// Whether it stores.
    pub store: bool,
}

/// The registers that addresses are computed from, with their origins.
pub struct Registers<'a> {
    pub values: &'a [u64; 16],
    pub origins: &'a [u64; 16],
    pub vectors: &'a [[u64; 8]; 32],
    pub vector_origins: &'a [u64; 32],
    pub segments: [u64; 2],
}

impl Address {
    /// The address of an access. The mnemonic determines whether elements of a vector index have four
    /// or eight bytes.
    pub fn of(access: &Access, instruction: &Instruction) -> Self {
        let number = |r: Register| match r {
            Register::None | Register::RIP | Register::EIP => NONE,
            r => u8::try_from(r.full_register().number()).unwrap_or(NONE) & 31,
        };
        let wide_index = {
            let name = name(instruction.mnemonic());
            // vpgatherqd, vgatherqpd, vpscatterqq, …
            access.lane.is_some() && (name.contains("herq") || name.contains("terq"))
        };
        Self {
            base: number(access.base),
            index: number(access.index),
            shift: access.scale.max(1).trailing_zeros() as u8,
            lane: access.lane.unwrap_or(NO_LANE),
            element: if wide_index { 8 } else { 4 },
            segment: segment(access.segment),
            wide: access.wide,
            displacement: access.displacement as u64,
            // Only saves and restores of processor state access more than a zmm register.
            bytes: access.bytes.min(64),
            load: access.load,
            store: access.store,
        }
    }

    /// The address operand of `lea`, without segment; `None` for other instructions.
    pub fn of_operand(instruction: &Instruction) -> Option<Self> {
        if instruction.mnemonic() != iced_x86::Mnemonic::Lea
            || instruction.op_kind(1) != OpKind::Memory
        {
            return None;
        }
        let base = instruction.memory_base();
        let access = Access {
            segment: Register::None,
            base,
            index: instruction.memory_index(),
            scale: instruction.memory_index_scale() as u8,
            displacement: instruction.memory_displacement64() as i64,
            bytes: 0,
            wide: !base.is_gpr32()
                && base != Register::EIP
                && !instruction.memory_index().is_gpr32(),
            load: false,
            store: false,
            conditional: false,
            lane: None,
        };
        Some(Self::of(&access, instruction))
    }

    /// Whether it has 64 bits.
    pub fn is_wide(&self) -> bool {
        self.wide
    }

    /// The address and its origins.
    pub fn compute(&self, registers: &Registers<'_>) -> (u64, u64) {
        let (mut address, mut origins) = (self.displacement, 0);
        if self.base != NONE {
            let base = usize::from(self.base & 15);
            address = address.wrapping_add(registers.values[base]);
            origins |= registers.origins[base];
        }
        if self.index != NONE {
            let (index, from) = self.index(registers);
            address = address.wrapping_add(index << self.shift);
            origins |= from;
        }
        if !self.wide {
            address &= u64::from(u32::MAX);
        }
        if self.segment > 0 {
            address = address.wrapping_add(registers.segments[usize::from(self.segment - 1)]);
        }
        (address, origins)
    }

    fn index(&self, registers: &Registers<'_>) -> (u64, u64) {
        if self.lane == NO_LANE {
            let index = usize::from(self.index & 15);
            return (registers.values[index], registers.origins[index]);
        }
        let vector = usize::from(self.index & 31);
        let bit = usize::from(self.lane) * usize::from(self.element) * 8;
        let lane = registers.vectors[vector][(bit / 64) & 7] >> (bit % 64);
        let value = if self.element == 4 { lane as i32 as u64 } else { lane };
        (value, registers.vector_origins[vector])
    }
}

fn segment(register: Register) -> u8 {
    match register {
        Register::FS => 1,
        Register::GS => 2,
        _ => 0,
    }
}
