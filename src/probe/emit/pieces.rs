//! Parts of all trampolines.

use crate::plan::Kind;
use crate::plan::NoTrampoline;
use iced_x86::{Code, FlowControl, IcedError, Instruction, MemoryOperand, Register};
use std::ops::Range;

/// Bytes below the stack pointer that a leaf function may use (System V ABI, AMD64, 3.2.2).
pub(super) const RED_ZONE: i64 = 128;
/// Makes an addition to `seto`'s 0 or 1 set the overflow flag again: 1 + 127 overflows a byte.
const OVERFLOW: i32 = 127;

/// Moves the stack pointer without changing flags.
pub(super) fn stack(distance: i64) -> Result<Instruction, IcedError> {
    let moved = MemoryOperand::with_base_displ(Register::RSP, distance);
    Instruction::with2(Code::Lea_r64_m, Register::RSP, moved)
}

/// Pushes the arithmetic flags. Changes rax.
pub(super) fn push_flags() -> Result<[Instruction; 3], IcedError> {
    Ok([
        Instruction::with(Code::Lahf),
        Instruction::with1(Code::Seto_rm8, Register::AL)?,
        Instruction::with1(Code::Push_r64, Register::RAX)?,
    ])
}

/// Pops the arithmetic flags. Changes rax.
pub(super) fn pop_flags() -> Result<[Instruction; 3], IcedError> {
    Ok([
        Instruction::with1(Code::Pop_r64, Register::RAX)?,
        Instruction::with2(Code::Add_rm8_imm8, Register::AL, OVERFLOW)?,
        Instruction::with(Code::Sahf),
    ])
}

/// Whether control may pass from the last instruction to the next address.
pub(super) fn falls_through(instructions: &[Instruction]) -> bool {
    instructions.last().is_none_or(|last| {
        !matches!(
            last.flow_control(),
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
        )
    })
}

/// The jump or call to the trampoline that replaces `own`; for a pun cut to the length of its
/// instruction.
pub(super) fn jump(kind: Kind, own: Range<u64>, trampoline: u64) -> Result<Vec<u8>, NoTrampoline> {
    let distance = trampoline.wrapping_sub(own.start.wrapping_add(5)).cast_signed();
    let distance = i32::try_from(distance).map_err(|_| NoTrampoline::OutOfReach)?;
    let code = if kind == Kind::Retarget { 0xe8 } else { 0xe9 };
    let mut bytes = vec![code];
    bytes.extend(distance.to_le_bytes());
    bytes.truncate(usize::try_from(own.end.wrapping_sub(own.start)).unwrap_or(bytes.len()));
    Ok(bytes)
}

/// The memory operand of an instruction when the stack pointer is `below` bytes lower than in the
/// program.
pub(super) fn memory(instruction: &Instruction, below: i64) -> Result<MemoryOperand, NoTrampoline> {
    let base = instruction.memory_base();
    if matches!(base, Register::ESP | Register::EIP) {
        return Err(NoTrampoline::NarrowAddress);
    }
    let displacement = instruction.memory_displacement64().cast_signed();
    let below = if base == Register::RSP { below } else { 0 };
    Ok(MemoryOperand::new(
        base,
        instruction.memory_index(),
        instruction.memory_index_scale(),
        displacement.wrapping_add(below),
        // The encoder chooses the shortest displacement, but must know that there is one.
        u32::from(base != Register::None && displacement != 0 || below != 0).max(1),
        false,
        instruction.segment_prefix(),
    ))
}
