//! A region decoded for fast evaluation: actions, the locations of their operands, and precomputed address expressions.

use super::action::{Action, counts_in_rcx, select_action};
use crate::deps::code::{CALLER_SAVED, Code, followed};
use crate::effects::{Access, Effects};
use crate::names::name;
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};

/// The operations of a region and their accesses.
#[derive(Debug, Default)]
pub struct Program {
    /// One operation per instruction.
    pub operations: Vec<Operation>,
    /// The accesses of all operations.
    pub addresses: Vec<Address>,
    /// For each access, the index of its instruction and its index among that instruction's accesses.
    pub owners: Vec<(usize, usize)>,
    /// The branch that ends the region, if it goes back to its start.
    pub back: Option<Back>,
}

/// When the branch at the end of a region is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// While a condition on the flags holds.
    If(ConditionCode),
    /// While rcx is not 0.
    Counter,
}

impl Program {
    /// Decodes `code`.
    pub fn of(code: &Code) -> Self {
        let mut program = Self { back: back(code), ..Self::default() };
        let followed = followed(code);
        for (number, (instruction, effects)) in
            code.instructions.iter().zip(&code.effects).enumerate()
        {
            let start = program.addresses.len() as u32;
            for (index, access) in effects.memory.iter().enumerate() {
                program.addresses.push(Address::of(access, instruction));
                program.owners.push((number, index));
            }
            let accesses = start..program.addresses.len() as u32;
            let followed = followed[number];
            program.operations.push(Operation::of(instruction, effects, followed, accesses));
        }
        if let Some(last) = program.operations.last_mut() {
            last.end_region();
        }
        program
    }
}

/// When the last instruction jumps back to the first one, if it does.
fn back(code: &Code) -> Option<Back> {
    let (first, last) = (code.instructions.first()?, code.instructions.last()?);
    if last.mnemonic() == Mnemonic::Loop && last.near_branch_target() == first.ip() {
        return counts_in_rcx(last).then_some(Back::Counter);
    }
    let back = last.is_jcc_short_or_near() && last.near_branch_target() == first.ip();
    let condition = last.condition_code();
    // `inc` and `dec` preserve the carry flag, but the flags' origins do not include the carry's.
    let leaves_carry = |i: &Instruction| matches!(i.mnemonic(), Mnemonic::Inc | Mnemonic::Dec);
    let by_carry = matches!(
        condition,
        ConditionCode::b | ConditionCode::ae | ConditionCode::be | ConditionCode::a
    ) && code.instructions.iter().any(leaves_carry);
    (back && !by_carry).then_some(Back::If(condition))
}

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
    /// Indices of its accesses in [`Program::addresses`].
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
