//! The part of a trampoline that times a load between fences, for a random one in N executions.
//!
//! `lfence; rdtsc; lfence; load; lfence; rdtsc`: `lfence` waits until all earlier instructions are
//! executed, and no later one begins before (Intel SDM vol. 2; AMD APM vol. 3 with the usual DE_CFG
//! setting, which Linux makes). The program's own instruction then loads again.
//!
//! **Run-ahead.** A processor that predicts an untimed execution loads its address, and those of
//! the next executions, speculatively: the line is then in the first cache. So the last executions
//! before a timed one have a fence before the load, too: more of them than a reorder buffer holds
//! (at least 12 instructions each; 512 at most as of 2026).
//!
//! Beside the count of records, the shared page has a seed and, for each load, the number of
//! executions until the next timed one.

use super::pieces::{Labelled, RECORDS, RED_ZONE, memory, pop_flags, push_flags, stack, take};
use crate::plan::NoTrampoline;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

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
