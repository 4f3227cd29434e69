//! The parts of a trampoline that log: the result of an allocator, at its entry (they call the function itself); or a
//! marker with time, thread and argument.
//!
//! Far behind the records the shared memory has a ring of entries: of [`ENTRY`] bytes for each successful call, without
//! room for which a call is only counted; of [`EVENT`] bytes for each marker, which waits for room while somebody reads.
//! The trampoline of a marker is timed from its first to nearly its last instruction, so that its time can be subtracted.
//!
//! The stack above the return address of a call is logged, too, to find the callers later. It may be unmapped at the
//! very top: if it is on another page than the return address, the kernel is asked (rt_sigprocmask(2) reads its set
//! before it refuses an operation that does not exist).

use super::pieces::{Labelled, RECORDS, RED_ZONE, pop_flags, push_flags, stack};
use super::values::GENERAL;
use crate::facts::Call;
use crate::plan::PAGE;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

/// Offset in the shared memory of the number of logged calls.
pub const LOGGED: u64 = 16;
/// Offset of the number of the first call without room; entries before it are free or were read.
pub const LIMIT: u64 = 24;
/// Offset of the log, after the records.
pub const LOG: u64 = 1 << 26;
/// Bytes of an entry: number of the call + 1, address, size, frame pointer, address of the return
/// address, number of the request, and words of the stack from the return address on.
pub const ENTRY: u64 = 200;
/// Entries of the ring: 200 MiB, used as far as they are written.
pub const ENTRIES: u64 = 1 << 20;
/// Offset in an entry of the words of the stack.
const WORDS: u64 = 48;
/// Words of the stack in an entry.
pub const STACK: u64 = (ENTRY - WORDS) / 8;

/// `rt_sigprocmask` (asm/unistd_64.h), and the bytes of its set.
const SIGPROCMASK: i32 = 14;
const SET: i32 = 8;
/// −EFAULT.
const FAULT: i32 = -14;
/// Lowest address that is an error of a system call (Linux, IS_ERR).
const ERROR: i32 = -4096;

/// The stack when the entry is written: returned rdx, rcx and rax, arguments rdx, rsi and rdi,
/// return address.
const THIRD: i64 = 24;
const SECOND: i64 = 32;
const FIRST: i64 = 40;
const RETURN: i64 = 48;

/// Adds the code that logs a call, to be followed by the function's instructions.
pub(super) fn allocated(
    all: &mut Labelled,
    call: Call,
    number: u32,
    shared: u64,
) -> Result<(), IcedError> {
    use Register::{RAX, RCX, RDI, RDX, RIP, RSI, RSP};
    let near = |offset: u64| MemoryOperand::with_base_displ(RIP, (shared + offset).cast_signed());
    let at = |base, displacement| MemoryOperand::with_base_displ(base, displacement);
    let load = |to, from| Instruction::with2(Code::Mov_r64_rm64, to, from);
    let store = |to, from| Instruction::with2(Code::Mov_rm64_r64, to, from);
    let [body, nothing] = std::array::from_fn(|_| all.label());
    // Three words: with the return address the stack is aligned again.
    for register in [RDI, RSI, RDX] {
        all.add(Instruction::with1(Code::Push_r64, register)?);
    }
    all.add(Instruction::with_branch(Code::Call_rel32_64, body)?);
    // The caller may know registers that the function does not change.
    for register in [RAX, RCX, RDX] {
        all.add(Instruction::with1(Code::Push_r64, register)?);
    }
    succeeded(all, call, nothing)?;
    let size = match call {
        Call::Malloc | Call::Calloc => FIRST,
        Call::Realloc | Call::Aligned | Call::Map | Call::Unmap => SECOND,
        Call::Posix | Call::Remap => THIRD,
    };
    all.add(load(RCX, at(RSP, size))?);
    if call == Call::Calloc {
        all.add(Instruction::with2(Code::Imul_r64_rm64, RCX, at(RSP, SECOND))?);
    }
    all.add(store(at(RSP, SECOND), RCX)?);
    match call {
        Call::Posix => all.extend([load(RAX, at(RSP, FIRST))?, load(RAX, at(RAX, 0))?]),
        Call::Unmap => all.add(load(RAX, at(RSP, FIRST))?),
        _ => {}
    }
    all.extend([
        store(at(RSP, FIRST), RAX)?,
        Instruction::with2(Code::Mov_r32_imm32, Register::EAX, 1)?,
        {
            let mut add = Instruction::with2(Code::Xadd_rm64_r64, near(LOGGED), RAX)?;
            add.set_has_lock_prefix(true);
            add
        },
        Instruction::with2(Code::Cmp_r64_rm64, RAX, near(LIMIT))?,
        Instruction::with_branch(Code::Jae_rel32_64, nothing)?,
        store(at(RSP, THIRD), RAX)?,
        Instruction::with2(Code::And_EAX_imm32, Register::EAX, ENTRIES as i32 - 1)?,
        Instruction::with3(Code::Imul_r64_rm64_imm32, RAX, RAX, ENTRY as i32)?,
        Instruction::with2(Code::Lea_r64_m, RCX, near(LOG))?,
        Instruction::with2(Code::Add_r64_rm64, RCX, RAX)?,
        load(RAX, at(RSP, FIRST))?,
        store(at(RCX, 8), RAX)?,
        load(RAX, at(RSP, SECOND))?,
        store(at(RCX, 16), RAX)?,
        store(at(RCX, 24), Register::RBP)?,
        Instruction::with2(Code::Lea_r64_m, RAX, at(RSP, RETURN))?,
        store(at(RCX, 32), RAX)?,
        Instruction::with2(Code::Mov_rm64_imm32, at(RCX, 40), number as i32)?,
    ]);
    log_stack(all)?;
    // Last, since a number marks an entry as complete.
    all.extend([
        load(RAX, at(RSP, THIRD))?,
        Instruction::with2(Code::Lea_r64_m, RAX, at(RAX, 1))?,
        store(at(RCX, 0), RAX)?,
    ]);
    all.mark(nothing);
    for register in [RDX, RCX, RAX] {
        all.add(Instruction::with1(Code::Pop_r64, register)?);
    }
    all.extend([
        Instruction::with2(Code::Lea_r64_m, RSP, at(RSP, 3 * 8))?,
        Instruction::with(Code::Retnq),
    ]);
    all.mark(body);
    Ok(())
}

/// Jumps to `nothing` if the call has failed; leaves rax as it is.
fn succeeded(all: &mut Labelled, call: Call, nothing: u64) -> Result<(), IcedError> {
    use Register::{EAX, RAX};
    let (test, failed) = match call {
        Call::Map | Call::Remap => {
            (Instruction::with2(Code::Cmp_RAX_imm32, RAX, ERROR)?, Code::Jae_rel32_64)
        }
        Call::Posix | Call::Unmap => {
            (Instruction::with2(Code::Test_rm32_r32, EAX, EAX)?, Code::Jne_rel32_64)
        }
        Call::Malloc | Call::Calloc | Call::Realloc | Call::Aligned => {
            (Instruction::with2(Code::Test_rm64_r64, RAX, RAX)?, Code::Je_rel32_64)
        }
    };
    all.extend([test, Instruction::with_branch(failed, nothing)?]);
    Ok(())
}

/// Copies the words of the stack to the entry at rcx; only the return address if the others are
/// unreadable. Changes rax and rdx.
fn log_stack(all: &mut Labelled) -> Result<(), IcedError> {
    use Register::{EAX, EDI, EDX, R10, R10D, R11, RAX, RCX, RDI, RSI, RSP};
    let at = |base, displacement| MemoryOperand::with_base_displ(base, displacement);
    let [whole, one] = std::array::from_fn(|_| all.label());
    let saved = [RCX, RSI, RDI, R10, R11];
    let last = RETURN + 8 * (STACK as i64 - 1);
    all.extend([
        Instruction::with2(Code::And_EAX_imm32, EAX, PAGE as i32 - 1)?,
        Instruction::with2(Code::Cmp_EAX_imm32, EAX, (PAGE - 8 * STACK) as i32)?,
        Instruction::with_branch(Code::Jbe_rel32_64, whole)?,
    ]);
    for register in saved {
        all.add(Instruction::with1(Code::Push_r64, register)?);
    }
    let pushed = 8 * saved.len() as i64;
    all.extend([
        Instruction::with2(Code::Lea_r64_m, RSI, at(RSP, pushed + last))?,
        Instruction::with2(Code::Mov_r32_imm32, EDI, -1)?,
        Instruction::with2(Code::Mov_r32_imm32, EDX, 0)?,
        Instruction::with2(Code::Mov_r32_imm32, R10D, SET)?,
        Instruction::with2(Code::Mov_r32_imm32, EAX, SIGPROCMASK)?,
        Instruction::with(Code::Syscall),
    ]);
    for register in saved.into_iter().rev() {
        all.add(Instruction::with1(Code::Pop_r64, register)?);
    }
    all.extend([
        Instruction::with2(Code::Cmp_EAX_imm32, EAX, FAULT)?,
        Instruction::with_branch(Code::Je_rel32_64, one)?,
    ]);
    all.mark(whole);
    for word in (0..STACK).rev() {
        if word == 0 {
            all.mark(one);
        }
        let offset = 8 * word as i64;
        all.extend([
            Instruction::with2(Code::Mov_r64_rm64, RAX, at(RSP, RETURN + offset))?,
            Instruction::with2(Code::Mov_rm64_r64, at(RCX, WORDS as i64 + offset), RAX)?,
        ]);
    }
    Ok(())
}

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
