//! Values that instructions write to their first operand: sums, masks and choices of their other operands.

use super::function::{Code, Operation, Value};
use super::run::{Made, Run};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use isa::effects::{Access, ArchReg};

impl Run<'_> {
    /// The value that the instruction writes to its first operand, of 32 or 64 bits, where it is a sum or a
    /// choice.
    pub(super) fn simple(&mut self, code: &Code) -> Option<Made> {
        let instruction = &code.instruction;
        if instruction.mnemonic() == Mnemonic::Cdqe {
            return Some(self.read(ArchReg::gpr(0)));
        }
        let bytes = match instruction.op0_kind() {
            OpKind::Register if instruction.op0_register().is_gpr() => {
                instruction.op0_register().size()
            }
            OpKind::Memory => instruction.memory_size().size(),
            _ => return None,
        };
        if bytes < 4 {
            return None;
        }
        let mut two = |how: fn(&Value, &Value) -> Option<Value>| {
            let (first, second) = (self.operand(code, 0)?, self.operand(code, 1)?);
            let value = how(&first.value, &second.value)?;
            Some(first.with(value, &second.sites))
        };
        Some(match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movsx | Mnemonic::Movsxd => self.operand(code, 1)?,
            Mnemonic::Movzx => {
                let made = self.operand(code, 1)?;
                Made { value: made.value.masked(width(instruction)?), ..made }
            }
            Mnemonic::Lea => self.address(&lea(instruction)),
            Mnemonic::Add => two(|a, b| Some(a.plus(b)))?,
            Mnemonic::Sub if same(instruction) => Made::of(Value::constant(0)),
            Mnemonic::Sub => two(|a, b| Some(a.plus(&b.times(-1))))?,
            Mnemonic::Xor if same(instruction) => Made::of(Value::constant(0)),
            Mnemonic::And => two(and)?,
            Mnemonic::Shl | Mnemonic::Sal => {
                two(|a, b| Some(a.times(1i64.checked_shl(b.as_constant()?.try_into().ok()?)?)))?
            }
            Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Neg => {
                let made = self.operand(code, 0)?;
                let value = match instruction.mnemonic() {
                    Mnemonic::Neg => made.value.times(-1),
                    Mnemonic::Inc => made.value.plus(&Value::constant(1)),
                    _ => made.value.plus(&Value::constant(-1)),
                };
                Made { value, ..made }
            }
            Mnemonic::Imul if instruction.op_count() == 3 => {
                let (value, by) = (self.operand(code, 1)?, constant(instruction, 2)?);
                Made { value: value.value.times(by), ..value }
            }
            _ if is_choice(instruction) => {
                let (first, second) = (self.operand(code, 0)?, self.operand(code, 1)?);
                let mut from = vec![first.value.clone(), second.value];
                let mut sites = second.sites;
                let flags = code.effects.reads.iter().filter(|read| read.reg.is_flag());
                for flag in flags.map(|read| self.read(read.reg)) {
                    from.push(flag.value);
                    sites.extend(flag.sites);
                }
                first.with(Value::computed(Operation::Choice, from), &sites)
            }
            _ => return None,
        })
    }

    pub(super) fn operand(&mut self, code: &Code, operand: u32) -> Option<Made> {
        let instruction = &code.instruction;
        Some(match instruction.op_kind(operand) {
            OpKind::Register => {
                let register = instruction.op_register(operand);
                let is_high =
                    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
                if !register.is_gpr() || is_high {
                    return None;
                }
                let mut made = self.read(ArchReg::of(register)?);
                if register.size() < 4 {
                    made.value = made.value.masked((1 << (8 * register.size())) - 1);
                }
                made
            }
            OpKind::Memory => {
                let access = code.effects.memory.iter().find(|m| m.load)?;
                self.load(access, instruction.ip())
            }
            _ => Made::of(Value::constant(constant(instruction, operand)?)),
        })
    }
}

/// A mask of low bits, or an and of two registers.
fn and(first: &Value, second: &Value) -> Option<Value> {
    let Some(mask) = second.as_constant().map(i64::cast_unsigned) else {
        return Some(Value::computed(Operation::And, vec![first.clone(), second.clone()]));
    };
    (mask & mask.wrapping_add(1) == 0).then(|| first.clone().masked(mask))
}

fn same(instruction: &Instruction) -> bool {
    instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
}

fn is_choice(instruction: &Instruction) -> bool {
    use iced_x86::ConditionCode::None;
    instruction.condition_code() != None
        && instruction.op_count() == 2
        && instruction.flow_control() == FlowControl::Next
}

fn constant(instruction: &Instruction, operand: u32) -> Option<i64> {
    use OpKind as K;
    matches!(
        instruction.op_kind(operand),
        K::Immediate8
            | K::Immediate32
            | K::Immediate64
            | K::Immediate8to32
            | K::Immediate8to64
            | K::Immediate32to64
    )
    .then(|| instruction.immediate(operand).cast_signed())
}

/// The mask of the source of `movzx`.
fn width(instruction: &Instruction) -> Option<u64> {
    let bytes = match instruction.op1_kind() {
        OpKind::Memory => return Some(u64::MAX),
        _ => instruction.op1_register().size(),
    };
    1u64.checked_shl(8 * u32::try_from(bytes).ok()?).map(|end| end - 1)
}

/// The address that `lea` computes, as an access.
fn lea(instruction: &Instruction) -> Access {
    let relative = instruction.is_ip_rel_memory_operand();
    Access {
        segment: Register::None,
        base: if relative { Register::None } else { instruction.memory_base() },
        index: instruction.memory_index(),
        scale: instruction.memory_index_scale() as u8,
        displacement: match relative {
            true => instruction.ip_rel_memory_address().cast_signed(),
            false => instruction.memory_displacement64().cast_signed(),
        },
        bytes: 0,
        wide: true,
        load: false,
        store: false,
        conditional: false,
        lane: None,
    }
}
