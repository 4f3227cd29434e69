//! The parts of a trampoline that record the value of an instruction, computed before it executes, or the values of
//! general registers, while records are wanted and within the block's quota.
//!
//! The shared page has a quota for each such request for registers: two bytes in the place of the countdown of a load
//! ([`super::countdown`]). So frequent blocks leave records to rare ones, and all records of an entry are consecutive.

use super::pieces::{
    Labelled, PART, RECORD, RECORDS, RED_ZONE, memory, pop_flags, push_flags, stack,
};
use super::timed::{MOST_TIMED, countdown};
use crate::plan::{NoTrampoline, What};
use iced_x86::{Code, ConditionCode, IcedError, Instruction, MemoryOperand, OpKind, Register};

/// Distance of the stack pointer below its value in the program when a value is read.
const BELOW: i64 = RED_ZONE + 16;

/// The instructions that load the observed value into rax. They find and leave the program's other
/// registers and flags, except for the stack pointer.
pub(super) fn value(
    what: What,
    instruction: &Instruction,
) -> Result<Vec<Instruction>, NoTrampoline> {
    Ok(match what {
        What::Outcome => {
            let set = condition(instruction).ok_or(NoTrampoline::Unconditional)?;
            let wide = Code::Movzx_r32_rm8;
            vec![
                Instruction::with1(set, Register::AL)?,
                Instruction::with2(wide, Register::EAX, Register::AL)?,
            ]
        }
        What::Target => {
            let is_plain = matches!(instruction.code(), Code::Jmp_rm64 | Code::Call_rm64);
            if !is_plain {
                return Err(NoTrampoline::Direct);
            }
            vec![match instruction.op0_kind() {
                OpKind::Memory => {
                    let memory = memory(instruction, BELOW)?;
                    Instruction::with2(Code::Mov_r64_rm64, Register::RAX, memory)?
                }
                _ if instruction.op0_register() == Register::RSP => {
                    return Err(NoTrampoline::ToStack);
                }
                _ => {
                    let from = instruction.op0_register();
                    Instruction::with2(Code::Mov_r64_rm64, Register::RAX, from)?
                }
            }]
        }
        What::Address => {
            let memory = memory(instruction, BELOW)?;
            vec![Instruction::with2(Code::Lea_r64_m, Register::RAX, memory)?]
        }
        What::Value { width } => {
            let memory = memory(instruction, BELOW)?;
            let (code, to) = match width {
                1 => (Code::Movzx_r32_rm8, Register::EAX),
                2 => (Code::Movzx_r32_rm16, Register::EAX),
                4 => (Code::Mov_r32_rm32, Register::EAX),
                _ => (Code::Mov_r64_rm64, Register::RAX),
            };
            vec![Instruction::with2(code, to, memory)?]
        }
        What::Entered => {
            let at = |displacement| MemoryOperand::with_base_displ(Register::RSP, displacement);
            vec![
                Instruction::with2(Code::Lea_r64_m, Register::RAX, at(BELOW))?,
                Instruction::with1(Code::Bswap_r64, Register::RAX)?,
                Instruction::with2(Code::Mov_r16_rm16, Register::AX, at(BELOW))?,
            ]
        }
        What::Latency { .. }
        | What::Registers { .. }
        | What::Allocated { .. }
        | What::Marked { .. } => return Err(NoTrampoline::NoValue),
    })
}

/// The `setcc` of the condition of a jump.
fn condition(jump: &Instruction) -> Option<Code> {
    Some(match jump.condition_code() {
        ConditionCode::None => return None,
        ConditionCode::o => Code::Seto_rm8,
        ConditionCode::no => Code::Setno_rm8,
        ConditionCode::b => Code::Setb_rm8,
        ConditionCode::ae => Code::Setae_rm8,
        ConditionCode::e => Code::Sete_rm8,
        ConditionCode::ne => Code::Setne_rm8,
        ConditionCode::be => Code::Setbe_rm8,
        ConditionCode::a => Code::Seta_rm8,
        ConditionCode::s => Code::Sets_rm8,
        ConditionCode::ns => Code::Setns_rm8,
        ConditionCode::p => Code::Setp_rm8,
        ConditionCode::np => Code::Setnp_rm8,
        ConditionCode::l => Code::Setl_rm8,
        ConditionCode::ge => Code::Setge_rm8,
        ConditionCode::le => Code::Setle_rm8,
        ConditionCode::g => Code::Setg_rm8,
    })
}

/// Bytes on the stack below the red zone when values are read: rcx, rax, flags.
const SAVED: i64 = 3 * 8;

/// The general registers, by their numbers in encodings.
pub(super) const GENERAL: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// Adds the code that records the registers in `mask`. Preserves registers and flags.
pub(super) fn registers(
    all: &mut Labelled,
    mask: u16,
    number: u32,
    shared: u64,
) -> Result<(), NoTrampoline> {
    if number >= MOST_TIMED {
        return Err(NoTrampoline::ManyRecorded);
    }
    Ok(recorded(all, mask, number, shared)?)
}

fn recorded(all: &mut Labelled, mask: u16, number: u32, shared: u64) -> Result<(), IcedError> {
    use Register::{CX, EAX, ECX, RAX, RCX, RIP, RSP};
    let near = |offset: u64| MemoryOperand::with_base_displ(RIP, (shared + offset).cast_signed());
    let at = |base, displacement| MemoryOperand::with_base_displ(base, displacement);
    let (wanted, left) = (near(0), near(countdown(number)));
    let numbers: Vec<u32> = (0..16).filter(|n| mask >> n & 1 != 0).collect();
    let several = numbers.len() as i32;
    let [full, done, closed] = std::array::from_fn(|_| all.label());
    all.extend([
        stack(-RED_ZONE)?,
        Instruction::with1(Code::Push_r64, RCX)?,
        Instruction::with2(Code::Mov_r64_rm64, RCX, wanted)?,
        Instruction::with_branch(Code::Jrcxz_rel8_64, closed)?,
        Instruction::with2(Code::Movzx_r32_rm16, ECX, left)?,
        Instruction::with_branch(Code::Jrcxz_rel8_64, closed)?,
        // Not atomic: with several threads the quota is approximate.
        Instruction::with2(Code::Lea_r32_m, ECX, at(RCX, -1))?,
        Instruction::with2(Code::Mov_rm16_r16, left, CX)?,
        Instruction::with1(Code::Push_r64, RAX)?,
    ]);
    all.extend(push_flags()?);
    all.extend([
        Instruction::with2(Code::Mov_rm64_imm32, RAX, -several)?,
        {
            let mut add = Instruction::with2(Code::Xadd_rm64_r64, wanted, RAX)?;
            add.set_has_lock_prefix(true);
            add
        },
        Instruction::with2(Code::Cmp_rm64_imm8, RAX, several)?,
        Instruction::with_branch(Code::Jl_rel8_64, full)?,
        Instruction::with2(Code::Shl_rm64_imm8, RAX, RECORD.ilog2())?,
        Instruction::with2(Code::Lea_r64_m, RCX, near(RECORDS - RECORD))?,
        Instruction::with2(Code::Add_r64_rm64, RCX, RAX)?,
    ]);
    let place = |index: usize, field: i64| at(RCX, field - (index as u64 * RECORD).cast_signed());
    for (index, register) in numbers.iter().enumerate() {
        let (value, before) = match GENERAL[*register as usize] {
            RAX => (RAX, Some(Instruction::with2(Code::Mov_r64_rm64, RAX, at(RSP, 8))?)),
            RCX => (RAX, Some(Instruction::with2(Code::Mov_r64_rm64, RAX, at(RSP, 16))?)),
            RSP => {
                let program = at(RSP, RED_ZONE + SAVED);
                (RAX, Some(Instruction::with2(Code::Lea_r64_m, RAX, program)?))
            }
            other => (other, None),
        };
        all.extend(before);
        all.add(Instruction::with2(Code::Mov_rm64_r64, place(index, 8), value)?);
    }
    all.extend([
        Instruction::with2(Code::Mov_r64_rm64, RAX, RSP)?,
        Instruction::with2(Code::Shr_rm64_imm8, RAX, crate::plan::PAGE.ilog2())?,
    ]);
    for index in 0..numbers.len() {
        all.add(Instruction::with2(Code::Mov_rm32_r32, place(index, 4), EAX)?);
    }
    for (index, register) in numbers.iter().enumerate() {
        let head = (number + 1) | (register << PART);
        all.add(Instruction::with2(Code::Mov_rm32_imm32, place(index, 0), head)?);
    }
    all.add(Instruction::with_branch(Code::Jmp_rel8_64, done)?);
    all.mark(full);
    // Too few records are left.
    all.add(Instruction::with2(Code::Mov_rm64_imm32, wanted, 0)?);
    all.mark(done);
    all.extend(pop_flags()?);
    all.add(Instruction::with1(Code::Pop_r64, RAX)?);
    all.mark(closed);
    all.extend([Instruction::with1(Code::Pop_r64, RCX)?, stack(RED_ZONE)?]);
    Ok(())
}
