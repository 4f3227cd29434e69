//! The parts of a trampoline that record a value: of an instruction, computed before it executes; of general registers,
//! while records are wanted and within the block's quota; or the time of a load.
//!
//! Beside the count of records, the shared page has a seed for times and, for each load, the number of executions until the
//! next timed one ([`countdown`]); in the same place two bytes with the quota of a request for registers. So frequent
//! blocks leave records to rare ones, and all records of an entry are consecutive.
//!
//! A load is timed between fences, for a random one in N executions: `lfence; rdtsc; lfence; load; lfence; rdtsc`. `lfence`
//! waits until all earlier instructions are executed, and no later one begins before (Intel SDM vol. 2; AMD APM vol. 3 with
//! the usual DE_CFG setting, which Linux makes). The program's own instruction then loads again.
//!
//! **Run-ahead.** A processor that predicts an untimed execution loads its address, and those of the next executions,
//! speculatively: the line is then in the first cache. So the last executions before a timed one have a fence before the
//! load, too: more of them than a reorder buffer holds (at least 12 instructions each; 512 at most as of 2026).

use super::pieces::{
    Labelled, PART, RECORD, RECORDS, RED_ZONE, memory, pop_flags, push_flags, stack, take,
};
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

/// Offset of the seed in the shared page.
const SEED: u64 = 8;
/// Offset of the countdowns of executions, two bytes each.
const COUNTDOWNS: u64 = 64;
/// Number of loads with a countdown.
pub const MOST_TIMED: u32 = ((RECORDS - COUNTDOWNS) / 2) as u32;
/// Decrement per execution: 64 executions are left when the upper byte becomes 0.
const COUNT: u16 = 4;
/// Most bits of a number of executions.
pub const MOST_BITS: u8 = 14;
/// Multiplier and increment of a linear congruential generator of 2³²: Press and others, Numerical Recipes,
/// 7.1.
const GENERATOR: (i32, i32) = (1_664_525, 1_013_904_223);

/// Offset in the shared page of the countdown of a load.
pub fn countdown(number: u32) -> u64 {
    COUNTDOWNS + 2 * u64::from(number)
}

/// A countdown of so many executions.
pub fn count(executions: u16) -> [u8; 2] {
    executions.wrapping_mul(COUNT).to_le_bytes()
}

/// Adds the code that times the load `instruction` of `width` bytes, at random one in 1 to 2^`bits`
/// executions, while records are wanted. The upper half of the record is the time of a load from
/// the first cache right before. Preserves registers and flags.
pub(super) fn time(
    all: &mut Labelled,
    instruction: &Instruction,
    width: u32,
    bits: u8,
    number: u32,
    shared: u64,
) -> Result<(), NoTrampoline> {
    if number >= MOST_TIMED {
        return Err(NoTrampoline::ManyTimed);
    }
    // Below the red zone are rcx, rax, the flags, rdx, r8 and r9.
    let address = memory(instruction, RED_ZONE + 6 * 8)?;
    Ok(timed(all, address, width, bits, number, shared)?)
}

fn timed(
    all: &mut Labelled,
    address: MemoryOperand,
    width: u32,
    bits: u8,
    number: u32,
    shared: u64,
) -> Result<(), IcedError> {
    use Register::{CH, CX, EAX, ECX, R8, R8D, R9, R9D, RAX, RCX, RDX, RIP, RSP};
    let near = |offset: u64| MemoryOperand::with_base_displ(RIP, (shared + offset).cast_signed());
    let at = |base, displacement| MemoryOperand::with_base_displ(base, displacement);
    let (wanted, seed, left) = (near(0), near(SEED), near(countdown(number)));
    let two = Instruction::with2::<Register, Register>;
    let [fenced, armed, again, finished, closed] = std::array::from_fn(|_| all.label());
    all.extend([
        stack(-RED_ZONE)?,
        Instruction::with1(Code::Push_r64, RCX)?,
        Instruction::with2(Code::Mov_r64_rm64, RCX, wanted)?,
        Instruction::with_branch(Code::Jrcxz_rel8_64, closed)?,
        // 16 bits, so that a countdown that another thread took below 0 wraps around.
        Instruction::with2(Code::Movzx_r32_rm16, ECX, left)?,
        Instruction::with2(Code::Lea_r32_m, ECX, at(RCX, -i64::from(COUNT)))?,
        Instruction::with2(Code::Mov_rm16_r16, left, CX)?,
        two(Code::Movzx_r32_rm8, ECX, CH)?,
        Instruction::with_branch(Code::Jrcxz_rel8_64, fenced)?,
        Instruction::with_branch(Code::Jmp_rel32_64, closed)?,
    ]);
    all.mark(fenced);
    all.extend([
        Instruction::with2(Code::Movzx_r32_rm16, ECX, left)?,
        Instruction::with_branch(Code::Jrcxz_rel8_64, armed)?,
        Instruction::with(Code::Lfence),
        Instruction::with_branch(Code::Jmp_rel32_64, closed)?,
    ]);
    all.mark(armed);
    all.add(Instruction::with1(Code::Push_r64, RAX)?);
    all.extend(push_flags()?);
    all.extend([
        Instruction::with1(Code::Push_r64, RDX)?,
        Instruction::with1(Code::Push_r64, R8)?,
        Instruction::with1(Code::Push_r64, R9)?,
        // Restored for the address.
        Instruction::with2(Code::Mov_r64_rm64, RAX, at(RSP, 32))?,
        Instruction::with2(Code::Mov_r64_rm64, RCX, at(RSP, 40))?,
        Instruction::with2(Code::Lea_r64_m, RCX, address)?,
        Instruction::with1(Code::Push_r64, RCX)?,
        // Room for the last result.
        Instruction::with1(Code::Push_r64, RCX)?,
        // First a word of the stack, twice: to get the code into the cache, and to compare with.
        Instruction::with2(Code::Lea_r64_m, RCX, at(RSP, 24))?,
        Instruction::with2(Code::Mov_r32_imm32, R9D, 2)?,
    ]);
    all.mark(again);
    let load = match width {
        1 => Instruction::with2(Code::Movzx_r32_rm8, EAX, at(RCX, 0))?,
        2 => Instruction::with2(Code::Movzx_r32_rm16, EAX, at(RCX, 0))?,
        4..8 => Instruction::with2(Code::Mov_r32_rm32, EAX, at(RCX, 0))?,
        _ => Instruction::with2(Code::Mov_r64_rm64, RAX, at(RCX, 0))?,
    };
    all.extend([
        Instruction::with(Code::Lfence),
        Instruction::with(Code::Rdtsc),
        Instruction::with(Code::Lfence),
        two(Code::Mov_r32_rm32, R8D, EAX)?,
        load,
        Instruction::with(Code::Lfence),
        Instruction::with(Code::Rdtsc),
        two(Code::Sub_r32_rm32, EAX, R8D)?,
        Instruction::with2(Code::Sub_rm32_imm8, R9D, 1)?,
        Instruction::with_branch(Code::Jb_rel8_64, finished)?,
        Instruction::with2(Code::Mov_rm64_r64, at(RSP, 0), RAX)?,
        Instruction::with2(Code::Cmove_r64_rm64, RCX, at(RSP, 8))?,
        Instruction::with_branch(Code::Jmp_rel8_64, again)?,
    ]);
    all.mark(finished);
    all.extend([
        Instruction::with2(Code::Mov_r64_rm64, RCX, at(RSP, 0))?,
        Instruction::with2(Code::Shl_rm64_imm8, RCX, 32)?,
        two(Code::Or_r64_rm64, RCX, RAX)?,
        Instruction::with2(Code::Mov_rm64_r64, at(RSP, 0), RCX)?,
        Instruction::with3(Code::Imul_r32_rm32_imm32, ECX, seed, GENERATOR.0)?,
        Instruction::with2(Code::Add_rm32_imm32, ECX, GENERATOR.1)?,
        Instruction::with2(Code::Mov_rm32_r32, seed, ECX)?,
        Instruction::with2(Code::Shr_rm32_imm8, ECX, 32 - i32::from(bits.clamp(1, MOST_BITS)))?,
        Instruction::with2(
            Code::Lea_r32_m,
            ECX,
            MemoryOperand::with_index_scale_displ_size(RCX, COUNT.into(), COUNT.into(), 1),
        )?,
        Instruction::with2(Code::Mov_rm16_r16, left, CX)?,
    ]);
    take(all, number, shared, 0)?;
    all.extend([
        stack(16)?,
        Instruction::with1(Code::Pop_r64, R9)?,
        Instruction::with1(Code::Pop_r64, R8)?,
        Instruction::with1(Code::Pop_r64, RDX)?,
    ]);
    all.extend(pop_flags()?);
    all.add(Instruction::with1(Code::Pop_r64, RAX)?);
    all.mark(closed);
    all.extend([Instruction::with1(Code::Pop_r64, RCX)?, stack(RED_ZONE)?]);
    Ok(())
}
