//! Records in shared memory: layout, and the code that writes one.

use super::labelled::Labelled;
use crate::plan::PAGE;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

/// Bytes of a record: number of the request + 1 with the number of a register in the upper bits,
/// page of the stack (32 bits each), and a value.
pub const RECORD: u64 = 16;
/// Bits of the number of a request + 1, below that of a register.
pub const PART: u32 = 24;
/// Offset of the first record.
pub const RECORDS: u64 = PAGE;
/// Bytes of a page as a power of two.
const PAGE_BITS: u32 = 12;

/// Takes a number and writes a record with the value at offset `value` of the stack. Changes rax,
/// rcx and the flags.
pub(super) fn take(
    all: &mut Labelled,
    number: u32,
    shared: u64,
    value: i64,
) -> Result<(), IcedError> {
    use Register::{EAX, RAX, RCX, RIP, RSP};
    let wanted = MemoryOperand::with_base_displ(RIP, shared.cast_signed());
    let before_first = (shared + RECORDS - RECORD).cast_signed();
    let before_first = MemoryOperand::with_base_displ(RIP, before_first);
    let at = |base, displacement| MemoryOperand::with_base_displ(base, displacement);
    let (full, done) = (all.label(), all.label());
    all.extend([
        Instruction::with2(Code::Mov_rm64_imm32, RAX, -1)?,
        {
            let mut add = Instruction::with2(Code::Xadd_rm64_r64, wanted, RAX)?;
            add.set_has_lock_prefix(true);
            add
        },
        Instruction::with2(Code::Test_rm64_r64, RAX, RAX)?,
        Instruction::with_branch(Code::Jle_rel8_64, full)?,
        Instruction::with2(Code::Shl_rm64_imm8, RAX, RECORD.ilog2())?,
        Instruction::with2(Code::Lea_r64_m, RCX, before_first)?,
        Instruction::with2(Code::Add_r64_rm64, RCX, RAX)?,
        Instruction::with2(Code::Mov_r64_rm64, RAX, at(RSP, value))?,
        Instruction::with2(Code::Mov_rm64_r64, at(RCX, 8), RAX)?,
        Instruction::with2(Code::Mov_r64_rm64, RAX, RSP)?,
        Instruction::with2(Code::Shr_rm64_imm8, RAX, PAGE_BITS)?,
        Instruction::with2(Code::Mov_rm32_r32, at(RCX, 4), EAX)?,
        // Last, since a number marks a record as complete.
        Instruction::with2(Code::Mov_rm32_imm32, at(RCX, 0), number + 1)?,
        Instruction::with_branch(Code::Jmp_rel8_64, done)?,
    ]);
    all.mark(full);
    // Another thread has taken the last number.
    all.add(Instruction::with2(Code::Mov_rm64_imm32, wanted, 0)?);
    all.mark(done);
    Ok(())
}
