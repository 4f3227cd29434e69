//! The components of an instruction's memory operand.

use iced_x86::{Instruction, OpKind, Register};

/// A memory operand: base + index + displacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    /// Full registers.
    pub base: Option<Register>,
    pub index: Option<Register>,
    /// The factor of the index; an index with 1 may be the pointer.
    pub scale: u64,
    /// Whether it is relative to the instruction pointer.
    pub is_relative: bool,
    /// Displacement; the address itself where there is no register, or the instruction pointer is the base.
    pub displacement: i64,
}

impl Operand {
    /// That of an instruction; `None` if it has none, several, or one in another segment (thread-local data).
    pub fn of(instruction: &Instruction) -> Option<Self> {
        let kinds = (0..instruction.op_count()).map(|number| instruction.op_kind(number));
        if kinds.filter(|kind| *kind == OpKind::Memory).count() != 1 {
            return None;
        }
        if matches!(instruction.segment_prefix(), Register::FS | Register::GS) {
            return None;
        }
        let full = |register: Register| {
            (register != Register::None && !register.is_ip()).then(|| register.full_register())
        };
        Some(Self {
            base: full(instruction.memory_base()),
            index: full(instruction.memory_index()).filter(|register| register.is_gpr()),
            scale: u64::from(instruction.memory_index_scale()),
            is_relative: instruction.is_ip_rel_memory_operand(),
            displacement: instruction.memory_displacement64() as i64,
        })
    }

    /// The factor of its index, if it has one.
    pub fn step(&self) -> Option<u64> {
        self.index.map(|_| self.scale)
    }

    /// Whether it is in the frame of its function, by the stack pointer.
    pub fn is_stack(&self) -> bool {
        self.base == Some(Register::RSP)
    }
}
