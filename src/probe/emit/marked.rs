//! The part of a trampoline that logs a marker: time, thread and argument.
//!
//! The shared memory has a ring like that of [`super::allocated`], with an entry of [`EVENT`] bytes
//! for each marker. A marker waits for room while somebody reads. The trampoline is timed from its
//! first to nearly its last instruction, so that its time can be subtracted.

use super::allocated::{LIMIT, LOGGED};
use super::labelled::Labelled;
use super::pieces::{RED_ZONE, pop_flags, push_flags, stack};
use super::records::RECORDS;
use super::registers::GENERAL;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

/// Offset of the ring.
pub const EVENTS: u64 = RECORDS;
/// Bytes of an entry: number of the event + 1; time stamp counter at the start and at the end of
/// its trampoline; base of the thread's own memory (fs); argument; numbers of the request and of
/// the process (32 bits each).
pub const EVENT: u64 = 64;
/// Entries of the ring: 64 MiB.
pub const MOST_EVENTS: u64 = 1 << 20;

/// Offset of the number of polls for room before a marker is lost: 0 if nobody reads.
pub const POLLS: u64 = 32;
/// Polls for room while somebody reads: about a second.
pub const MOST_POLLS: u32 = 1 << 25;
/// Entries left for markers of other threads that have polled, too.
const SLACK: i64 = 64;

/// The stack when the entry is written: number of the event, time, flags, rdx, rcx and rax.
const TIME: i64 = 8;
const SAVED: [(Register, i64); 3] = [(Register::RDX, 24), (Register::RCX, 32), (Register::RAX, 40)];
/// Distance of the stack pointer below its value in the program, then.
const BELOW: i64 = RED_ZONE + 48;

/// Adds the code that logs a marker, whose argument is in the register with this number. `process`
/// is the address of the number of the process. Preserves registers and flags.
pub(super) fn marked(
    all: &mut Labelled,
    argument: Option<u8>,
    process: u64,
    number: u32,
    shared: u64,
) -> Result<(), IcedError> {
    use Register::{EAX, ECX, RAX, RCX, RDX, RIP, RSP};
    let near = |at: u64| MemoryOperand::with_base_displ(RIP, at.cast_signed());
    let at = |base, displacement| MemoryOperand::with_base_displ(base, displacement);
    let load = |to, from| Instruction::with2(Code::Mov_r64_rm64, to, from);
    let store = |to, from| Instruction::with2(Code::Mov_rm64_r64, to, from);
    let [full, poll, given_up, room] = std::array::from_fn(|_| all.label());
    all.add(stack(-RED_ZONE)?);
    for register in [RAX, RCX, RDX] {
        all.add(Instruction::with1(Code::Push_r64, register)?);
    }
    all.extend(push_flags()?);
    time(all)?;
    all.extend([
        Instruction::with1(Code::Push_r64, RAX)?,
        Instruction::with2(Code::Mov_r32_rm32, ECX, near(shared + POLLS))?,
    ]);
    all.mark(poll);
    all.extend([
        load(RAX, near(shared + LOGGED))?,
        Instruction::with2(Code::Lea_r64_m, RAX, at(RAX, SLACK))?,
        Instruction::with2(Code::Cmp_r64_rm64, RAX, near(shared + LIMIT))?,
        Instruction::with_branch(Code::Jb_rel8_64, room)?,
        // Waiting counts as time of the probe.
        Instruction::with2(Code::Sub_rm32_imm8, ECX, 1)?,
        Instruction::with_branch(Code::Jb_rel8_64, given_up)?,
        Instruction::with(Code::Pause),
        Instruction::with_branch(Code::Jmp_rel8_64, poll)?,
    ]);
    all.mark(given_up);
    all.add(Instruction::with2(Code::Mov_rm32_imm32, near(shared + POLLS), 0)?);
    all.mark(room);
    all.extend([
        Instruction::with2(Code::Mov_r32_imm32, EAX, 1)?,
        {
            let mut add = Instruction::with2(Code::Xadd_rm64_r64, near(shared + LOGGED), RAX)?;
            add.set_has_lock_prefix(true);
            add
        },
        Instruction::with1(Code::Push_r64, RAX)?,
        Instruction::with2(Code::Cmp_r64_rm64, RAX, near(shared + LIMIT))?,
        Instruction::with_branch(Code::Jae_rel32_64, full)?,
        Instruction::with2(Code::And_EAX_imm32, EAX, MOST_EVENTS as i32 - 1)?,
        Instruction::with2(Code::Shl_rm64_imm8, RAX, EVENT.ilog2())?,
        Instruction::with2(Code::Lea_r64_m, RCX, near(shared + EVENTS))?,
        Instruction::with2(Code::Add_r64_rm64, RCX, RAX)?,
        load(RAX, at(RSP, TIME))?,
        store(at(RCX, 8), RAX)?,
        Instruction::with1(Code::Rdfsbase_r64, RAX)?,
        store(at(RCX, 24), RAX)?,
    ]);
    if let Some(register) = argument.and_then(|n| GENERAL.get(usize::from(n))) {
        let saved = SAVED.iter().find(|(saved, _)| saved == register);
        let value = match (saved, *register) {
            (Some((_, place)), _) => Some(load(RAX, at(RSP, *place))?),
            (None, RSP) => Some(Instruction::with2(Code::Lea_r64_m, RAX, at(RSP, BELOW))?),
            _ => None,
        };
        let from = if value.is_some() { RAX } else { *register };
        all.extend(value);
        all.add(store(at(RCX, 32), from)?);
    }
    all.extend([
        Instruction::with2(Code::Mov_rm32_imm32, at(RCX, 40), number)?,
        Instruction::with2(Code::Mov_r32_rm32, EAX, near(process))?,
        Instruction::with2(Code::Mov_rm32_r32, at(RCX, 44), EAX)?,
    ]);
    time(all)?;
    all.extend([
        store(at(RCX, 16), RAX)?,
        // Last, since a number marks an entry as complete.
        load(RAX, at(RSP, 0))?,
        Instruction::with2(Code::Lea_r64_m, RAX, at(RAX, 1))?,
        store(at(RCX, 0), RAX)?,
    ]);
    all.mark(full);
    all.add(stack(16)?);
    all.extend(pop_flags()?);
    for register in [RDX, RCX, RAX] {
        all.add(Instruction::with1(Code::Pop_r64, register)?);
    }
    all.add(stack(RED_ZONE)?);
    Ok(())
}

/// Adds the code that reads the time stamp counter into rax. Changes rdx and the flags.
fn time(all: &mut Labelled) -> Result<(), IcedError> {
    all.extend([
        Instruction::with(Code::Rdtsc),
        Instruction::with2(Code::Shl_rm64_imm8, Register::RDX, 32)?,
        Instruction::with2(Code::Or_r64_rm64, Register::RAX, Register::RDX)?,
    ]);
    Ok(())
}
