//! Parts of all trampolines: instructions with jumps among them, and records in shared memory.

use crate::plan::{JUMP, Kind, NoTrampoline, PAGE, PREFIX};
use iced_x86::{Code, FlowControl, IcedError, Instruction, MemoryOperand, Register};
use std::ops::Range;

/// Instructions with labels, which are addresses that no code has.
#[derive(Default)]
pub(super) struct Labelled {
    pub instructions: Vec<Instruction>,
    labels: u64,
    /// The label of the next instruction.
    next: u64,
}

impl Labelled {
    /// Adds an instruction without its old address: jumps to it go to the patch, not to its copy.
    pub fn add(&mut self, mut instruction: Instruction) {
        instruction.set_ip(std::mem::take(&mut self.next));
        self.instructions.push(instruction);
    }

    /// Adds new instructions.
    pub fn extend(&mut self, all: impl IntoIterator<Item = Instruction>) {
        all.into_iter().for_each(|one| self.add(one));
    }

    /// Creates a label, to be placed by [`Self::mark`].
    pub fn label(&mut self) -> u64 {
        self.labels += 1;
        self.labels
    }

    /// Places a label at the next instruction.
    pub fn mark(&mut self, label: u64) {
        self.next = label;
    }
}

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
    let prefixes = kind.prefixes();
    let next = own.start.wrapping_add(prefixes + JUMP);
    let distance = trampoline.wrapping_sub(next).cast_signed();
    let distance = i32::try_from(distance).map_err(|_| NoTrampoline::OutOfReach)?;
    let code = if kind == Kind::Retarget { 0xe8 } else { 0xe9 };
    let mut bytes = vec![PREFIX; prefixes as usize];
    bytes.push(code);
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
