//! Transfer functions of instructions for the backward slice of a jump target: which registers an
//! instruction writes and with which values. Results of instructions that are not listed are unknown.

use super::value::{Value, mask};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess,
    OpKind, Register,
};

const RSP: u8 = 4;
/// The register that a direct call is assumed to write: rax, the return value. Code that reads other
/// registers after the call relies on the callee to preserve them, whatever the calling convention
/// says; gcc's `-fipa-ra` does.
const RETURNED: u16 = 1;
/// Registers that an indirect call (System V calling convention) or `syscall` may change: rax, rcx,
/// rdx, rsi, rdi, r8 to r11.
const CLOBBERED: u16 = 0b1111_1100_0111;

/// Possible writes of an instruction, so that the slice can skip most instructions quickly.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WriteSummary {
    /// General-purpose registers written, as a bit mask.
    pub written: u16,
    /// Whether it changes flags.
    pub flags: bool,
    /// Whether it writes memory.
    pub stores: bool,
}

impl WriteSummary {
    /// The summary of `instruction`.
    pub fn of(instruction: &Instruction, facts: &mut InstructionInfoFactory) -> Self {
        if is_call(instruction) {
            let written = if instruction.is_call_near() { RETURNED } else { CLOBBERED };
            return Self { written, flags: true, stores: true };
        }
        let info = facts.info_options(instruction, InstructionInfoOptions::NONE);
        let mut summary = Self { flags: instruction.rflags_modified() != 0, ..Self::default() };
        for used in info.used_registers() {
            if let Some(number) = number(used.register()).filter(|_| writes(used.access())) {
                summary.written |= 1 << number;
            }
        }
        summary.stores = info.used_memory().iter().any(|m| writes(m.access()));
        summary
    }
}

fn is_call(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// Encoding number of a general-purpose register of any width.
fn number(register: Register) -> Option<u8> {
    let full = register.full_register();
    full.is_gpr64().then(|| u8::try_from(full.number()).ok()).flatten()
}

/// The value of operand `operand` before the instruction; [`Value::Opaque`] if it is not modelled.
pub(super) fn operand(instruction: &Instruction, operand: u32) -> Value {
    match instruction.op_kind(operand) {
        OpKind::Register => register(instruction.op_register(operand)),
        OpKind::Memory => address(instruction).map_or(Value::Opaque, |address| {
            match instruction.memory_size().size() {
                bytes @ (1 | 2 | 4 | 8) => Value::Load(Box::new(address), bytes as u8),
                _ => Value::Opaque,
            }
        }),
        OpKind::Immediate8
        | OpKind::Immediate16
        | OpKind::Immediate32
        | OpKind::Immediate64
        | OpKind::Immediate8to16
        | OpKind::Immediate8to32
        | OpKind::Immediate8to64
        | OpKind::Immediate32to64 => Value::constant(instruction.immediate(operand)),
        _ => Value::Opaque,
    }
}

fn register(register: Register) -> Value {
    match (number(register), register.size()) {
        _ if is_high_byte(register) => Value::Opaque,
        (Some(number), 8) => Value::Register(number),
        (Some(number), bytes) => Value::Register(number).low(bytes as u8 * 8),
        (None, _) => Value::Opaque,
    }
}

fn is_high_byte(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}

/// The address of the memory operand; `None` if it is not modelled.
pub(super) fn address(instruction: &Instruction) -> Option<Value> {
    if matches!(instruction.segment_prefix(), Register::FS | Register::GS) {
        return None;
    }
    if instruction.is_ip_rel_memory_operand() {
        return Some(Value::constant(instruction.ip_rel_memory_address()));
    }
    let mut address = Value::constant(instruction.memory_displacement64());
    for (part, scale) in [
        (instruction.memory_base(), 1),
        (instruction.memory_index(), instruction.memory_index_scale()),
    ] {
        if part == Register::None {
            continue;
        }
        if !part.is_gpr64() {
            return None;
        }
        address = address.plus(Value::Register(number(part)?).times(u64::from(scale)));
    }
    Some(address)
}

/// The values of the registers in `writes` after the instruction, in terms of the values before it.
pub(super) fn definitions(instruction: &Instruction, writes: WriteSummary) -> Vec<(u8, Value)> {
    let mut definitions: Vec<_> = (0..16)
        .filter(|number| writes.written & 1 << number != 0)
        .map(|number| (number, Value::Opaque))
        .collect();
    let mut set = |number: u8, value: Value| {
        if let Some(known) = definitions.iter_mut().find(|d| d.0 == number) {
            known.1 = value;
        }
    };
    if matches!(instruction.mnemonic(), Mnemonic::Push | Mnemonic::Pop) {
        let down = instruction.stack_pointer_increment();
        set(RSP, Value::Register(RSP).plus(Value::constant(i64::from(down).cast_unsigned())));
    }
    if instruction.op0_kind() == OpKind::Register
        && let Some(number) = number(instruction.op0_register())
        && !is_high_byte(instruction.op0_register())
        && let Some(value) = result(instruction)
    {
        set(number, written(instruction.op0_register().size(), value));
    }
    if matches!(instruction.mnemonic(), Mnemonic::Cdqe) {
        set(0, Value::Register(0).signed(32));
    }
    definitions
}

/// A register's value after a write of `bytes`: 32 bits clear the upper half, fewer leave the rest.
fn written(bytes: usize, value: Value) -> Value {
    match bytes {
        8 => value,
        4 => value.low(32),
        bytes => Value::Part(Box::new(value), bytes as u8 * 8),
    }
}

/// The value that the instruction writes to its first operand; `None` if it is not modelled.
fn result(instruction: &Instruction) -> Option<Value> {
    let second = || operand(instruction, 1);
    let first = || operand(instruction, 0);
    let bits = instruction.op0_register().size() as u8 * 8;
    Some(match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Pop if instruction.op_count() == 2 => second(),
        Mnemonic::Pop => Value::Load(Box::new(Value::Register(RSP)), 8),
        Mnemonic::Movsx | Mnemonic::Movsxd => second().signed(operand_bits(instruction, 1)?),
        Mnemonic::Lea => address(instruction)?,
        Mnemonic::Add if instruction.op_count() == 2 => first().plus(second()),
        Mnemonic::Sub if instruction.op_count() == 2 => first().minus(second()),
        Mnemonic::Inc => first().plus(Value::constant(1)),
        Mnemonic::Dec => first().minus(Value::constant(1)),
        Mnemonic::And => match (first(), second()) {
            (value, other) if other.as_constant().is_some() => value.and(other.as_constant()?),
            (value, other) => {
                // The result is at most the smaller of the two.
                let most =
                    [value.upper_bound(), other.upper_bound()].into_iter().flatten().min()?;
                Value::Opaque.and(u64::MAX.checked_shr(most.leading_zeros()).unwrap_or(0))
            }
        },
        Mnemonic::Xor
            if instruction.op1_kind() == OpKind::Register
                && instruction.op0_register() == instruction.op1_register() =>
        {
            Value::constant(0)
        }
        Mnemonic::Shl | Mnemonic::Sal => {
            first().times(1u64.checked_shl(u32::try_from(second().as_constant()?).ok()?)?)
        }
        Mnemonic::Shr => {
            let by =
                u8::try_from(second().as_constant()?).ok().filter(|&by| by > 0 && by < bits)?;
            Value::Opaque.and(mask(bits - by))
        }
        _ => return None,
    })
}

fn operand_bits(instruction: &Instruction, operand: u32) -> Option<u8> {
    let bytes = match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).size(),
        OpKind::Memory => instruction.memory_size().size(),
        _ => return None,
    };
    matches!(bytes, 1 | 2 | 4).then_some(bytes as u8 * 8)
}

/// Address, size in bytes and value of its store, in terms of the values before it; `None` if the
/// address is not known.
pub(super) fn store(instruction: &Instruction) -> Option<(Value, u8, Value)> {
    if is_call(instruction) {
        return None;
    }
    if instruction.mnemonic() == Mnemonic::Push {
        let to = Value::Register(RSP).plus(Value::constant(8u64.wrapping_neg()));
        let is_whole = instruction.stack_pointer_increment() == -8;
        return is_whole.then(|| (to, 8, operand(instruction, 0)));
    }
    let is_plain = instruction.op0_kind() == OpKind::Memory && !instruction.is_string_instruction();
    let bytes = u8::try_from(instruction.memory_size().size()).ok().filter(|&b| b > 0)?;
    let to = address(instruction).filter(|_| is_plain)?;
    let what = match instruction.mnemonic() {
        Mnemonic::Mov => operand(instruction, 1),
        _ => Value::Opaque,
    };
    Some((to, bytes, what))
}
