//! Instructions made ready to be evaluated many times: an action and where its operands are.

use super::action::Action;
use super::address::Address;
use super::choose::choose;
use crate::effects::Effects;
use iced_x86::{Instruction, OpKind, Register};

/// Where an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// There is none.
    None,
    /// General-purpose register and the bit that it starts at: 8 for `ah`.
    Register(u8, u8),
    /// Vector register.
    Vector(u8),
    /// Constant.
    Value(u64),
    /// What the first load loaded, or where the first store goes.
    Memory,
}

/// An instruction to evaluate.
#[derive(Debug, Clone)]
pub struct Operation {
    /// What to compute.
    pub action: Action,
    /// Bytes of the result; of sources, too, unless `from` says otherwise.
    pub size: u8,
    /// Bytes of the source of an extension.
    pub from: u8,
    /// Operands in Intel's order.
    pub operands: [Slot; 3],
    /// Its accesses in [`super::program::Program::addresses`].
    pub accesses: std::ops::Range<u32>,
    /// The operand of `lea`.
    pub address: Option<Address>,
    /// Whether it writes memory.
    pub stores: bool,
    /// What becomes unknown: general-purpose registers, a bit each.
    pub general: u16,
    /// Vector registers, a bit each.
    pub vectors: u32,
    /// Flags.
    pub flags: bool,
    /// Bytes that a scalar move between vector registers copies; 0 for other instructions.
    pub scalar: u8,
    /// What is added to `rsp`.
    pub stack: i32,
}

impl Operation {
    /// Makes `instruction` ready. `followed` is whether the region goes on elsewhere than behind it.
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
            action: choose(instruction, followed),
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
            match write.place.index() {
                number @ 0..16 => operation.general |= 1 << number,
                number @ 16..48 => operation.vectors |= 1 << (number - 16),
                _ => operation.flags |= write.place.is_flag(),
            }
        }
        if operation.action == Action::CallOver {
            // rax, rcx, rdx, rsi, rdi, r8 to r11 (System V ABI, 3.2.1); rsp is what it was.
            operation.general = 0b1111_1100_0111;
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

    /// As the last of its region: behind a call that is not followed runs code that is not part of
    /// it, before it begins again. What that leaves in registers is unknown, `rsp` apart.
    pub fn leaves_region(&mut self) {
        if self.action == Action::CallOver {
            self.general = !(1 << 4);
        }
    }

    /// Whether it writes general-purpose registers with values that nothing is known of.
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

/// Bytes of an operand; of an immediate, as many as the first operand has; of an operand that is not
/// written, what the mnemonic says.
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
