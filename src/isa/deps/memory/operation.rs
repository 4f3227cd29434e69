//! Instructions decoded for fast evaluation: an action and the locations of its operands.

use super::action::Action;
use super::address::Address;
use super::select_action::select_action;
use crate::deps::calls::CALLER_SAVED;
use crate::effects::Effects;
use iced_x86::{Instruction, OpKind, Register};

/// The location of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// No operand.
    None,
    /// General-purpose register and first bit: 8 for `ah`.
    Register(u8, u8),
    /// Vector register.
    Vector(u8),
    /// Constant.
    Value(u64),
    /// The value of the first load, or the destination of the first store.
    Memory,
}

/// A decoded instruction.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The computation.
    pub action: Action,
    /// Bytes of the result, and of sources unless `from` applies.
    pub size: u8,
    /// Bytes of the source of an extension.
    pub from: u8,
    /// Operands in Intel order.
    pub operands: [Slot; 3],
    /// Indices of its accesses in [`super::program::Program::addresses`].
    pub accesses: std::ops::Range<u32>,
    /// The operand of `lea`.
    pub address: Option<Address>,
    /// Whether it writes memory.
    pub stores: bool,
    /// General-purpose registers written, as a bit mask; they may become unknown.
    pub general: u16,
    /// Vector registers written, as a bit mask.
    pub vectors: u32,
    /// Whether it writes flags.
    pub flags: bool,
    /// Bytes that a scalar move between vector registers copies; 0 for other instructions.
    pub scalar: u8,
    /// Change of `rsp` in bytes.
    pub stack: i32,
}

impl Operation {
    /// Decodes `instruction`. `followed` is whether the region follows it, if it is a call, into the
    /// callee.
    pub fn of(
        instruction: &Instruction,
        effects: &Effects,
        followed: bool,
        accesses: std::ops::Range<u32>,
    ) -> Self {
        let mut operands = [Slot::None; 3];
        for (number, slot) in operands.iter_mut().enumerate() {
            *slot = operand(instruction, number as u32);
        }
        let mut operation = Self {
            action: select_action(instruction, followed),
            size: size(instruction, 0),
            from: size(instruction, 1),
            operands,
            accesses,
            address: Address::of_operand(instruction),
            stores: effects.memory.iter().any(|m| m.store && m.bytes > 0),
            general: 0,
            vectors: 0,
            flags: false,
            scalar: scalar(instruction),
            stack: instruction.stack_pointer_increment(),
        };
        for write in &effects.writes {
            match write.reg.index() {
                number @ 0..16 => operation.general |= 1 << number,
                number @ 16..48 => operation.vectors |= 1 << (number - 16),
                _ => operation.flags |= write.reg.is_flag(),
            }
        }
        if operation.action == Action::CallOver {
            operation.general = CALLER_SAVED;
            operation.vectors = u32::MAX;
            operation.flags = true;
        }
        if operation.stack != 0 {
            operation.general &= !(1 << 4);
        }
        let nothing = operation.general == 0 && operation.vectors == 0 && !operation.flags;
        if operation.action == Action::Unknown && nothing && operation.accesses.is_empty() {
            operation.action = Action::Nothing;
        }
        operation
    }

    /// Adjusts the last operation of a region: after a call that is not followed, code outside the
    /// region runs before the next iteration, so all registers but `rsp` become unknown.
    pub fn end_region(&mut self) {
        if self.action == Action::CallOver {
            self.general = !(1 << 4);
        }
    }

    /// Whether it is a repeated string instruction that is evaluated if its count is known.
    pub fn is_repeated(&self) -> bool {
        matches!(self.action, Action::RepeatMovs | Action::RepeatStos)
    }

    /// Whether it writes unknown values to general-purpose registers.
    pub fn is_opaque(&self) -> bool {
        matches!(self.action, Action::Unknown | Action::CallOver) && self.general & !(1 << 4) != 0
    }
}

fn operand(instruction: &Instruction, number: u32) -> Slot {
    if number >= instruction.op_count() {
        return Slot::None;
    }
    match instruction.op_kind(number) {
        OpKind::Register => register(instruction.op_register(number)),
        OpKind::Memory => Slot::Memory,
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => Slot::None,
        OpKind::FarBranch16 | OpKind::FarBranch32 => Slot::None,
        _ => instruction.try_immediate(number).map_or(Slot::None, Slot::Value),
    }
}

fn register(register: Register) -> Slot {
    let number = |r: Register| u8::try_from(r.full_register().number()).unwrap_or(0);
    match register {
        Register::AH | Register::CH | Register::DH | Register::BH => {
            Slot::Register(number(register) & 15, 8)
        }
        r if r.is_gpr() => Slot::Register(number(r) & 15, 0),
        r if r.is_vector_register() => Slot::Vector(number(r) & 31),
        _ => Slot::None,
    }
}

/// Size of an operand in bytes. Immediates have the size of the first operand, implicit operands the
/// size that the mnemonic implies.
fn size(instruction: &Instruction, number: u32) -> u8 {
    use iced_x86::Mnemonic as M;
    let bytes = match (number < instruction.op_count()).then(|| instruction.op_kind(number)) {
        Some(OpKind::Register) => instruction.op_register(number).size(),
        _ if instruction.is_string_instruction() => instruction.memory_size().size(),
        Some(OpKind::Memory) => instruction.memory_size().size(),
        _ if number > 0 => return size(instruction, 0),
        _ => match instruction.mnemonic() {
            M::Cbw | M::Cwd => 2,
            M::Cwde | M::Cdq => 4,
            _ => 8,
        },
    };
    u8::try_from(bytes).unwrap_or(0)
}

fn scalar(instruction: &Instruction) -> u8 {
    match instruction.mnemonic() {
        iced_x86::Mnemonic::Movss => 4,
        iced_x86::Mnemonic::Movsd if !instruction.is_string_instruction() => 8,
        _ => 0,
    }
}
