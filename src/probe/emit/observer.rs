//! The trampoline of an observer: while the gate is open, a record of what an instruction will do;
//! then the instructions themselves and a jump back.
//!
//! Shared memory holds the number of records still wanted, and the records. This number is the
//! gate: it is set from outside, and while it is 0, a probe only tests it. A probe with several
//! records, or where flags may change, has the instructions twice to test a closed gate once.
//! Records are written from the last to the first by the thread that takes a number (`lock xadd`):
//! they are in the order of execution in all threads.

use super::logs::{allocated, marked};
use super::pieces::{Labelled, RED_ZONE, falls_through, jump, pop_flags, push_flags, stack, take};
use super::trampoline::Patch;
use super::values::{registers, time, value};
use crate::plan::{NoTrampoline, Observer, Request, What};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, IcedError, Instruction,
    InstructionBlock, MemoryOperand, Register,
};

/// Most bytes of a trampoline of so many parts ([`What::parts`]) and instructions: counted bytes
/// per part, at most 15 per instruction, or a jump with 6 instead of 2.
pub fn most(parts: usize, instructions: usize) -> u64 {
    // Less than 64 bytes for the gate before two copies of the instructions.
    (96 + 64) * parts as u64 + 2 * (15 * instructions as u64 + 5)
}

/// Encodes an observer in code that runs at `bias` + p_vaddr. `code` are the bytes from its first
/// instruction on, `requests` its requests with their numbers in records; `shared` and `trampoline`
/// are addresses in the process.
///
/// # Errors
/// Something is too far away, cannot be encoded elsewhere or cannot be observed.
pub fn emit_observer(
    observer: &Observer,
    code: &[u8],
    bias: u64,
    requests: &[(Request, u32)],
    shared: u64,
    trampoline: u64,
) -> Result<Patch, NoTrampoline> {
    let at = bias.wrapping_add(observer.at);
    let until = bias.wrapping_add(observer.until);
    let mut inside = Vec::new();
    for instruction in Decoder::with_ip(64, code, at, DecoderOptions::NONE) {
        inside.push(instruction);
        // A call stays where it is and is recorded before.
        if instruction.ip() >= until {
            break;
        }
    }
    let displaced: Vec<Instruction> =
        inside.iter().copied().take_while(|one| one.ip() < until).collect();
    let back = match falls_through(&displaced) {
        true => Some(Instruction::with_branch(Code::Jmp_rel32_64, until)?),
        false => None,
    };
    let mut all = Labelled::default();
    let may_change_flags = observer.may_change_flags;
    let is_worth_it = requests.len() > 1 || may_change_flags;
    if is_worth_it && requests.iter().all(|(request, _)| has_gate(request.what)) {
        let plain = displaced.iter().copied().chain(back);
        match may_change_flags {
            true => closed_by_flags(&mut all, plain, shared)?,
            false => closed_at_once(&mut all, plain, shared)?,
        }
    }
    observed(&mut all, &inside, until, bias, requests, shared)?;
    all.extend(back);
    let block = InstructionBlock::new(&all.instructions, trampoline);
    let encoded = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE)?;
    let parts = requests.iter().map(|(request, _)| request.what.parts()).sum();
    if encoded.code_buffer.len() as u64 > most(parts, displaced.len()) {
        return Err(NoTrampoline::TooLong);
    }
    let jump = jump(observer.kind, at..bias.wrapping_add(observer.next), trampoline)?;
    Ok(Patch { trampoline: encoded.code_buffer, prefixes: Vec::new(), jump })
}

/// Whether the record depends on the gate.
fn has_gate(what: What) -> bool {
    !matches!(what, What::Allocated { .. } | What::Marked { .. })
}

/// Adds the instructions alone, for a closed gate; code added after it runs while the gate is open.
fn closed_at_once(
    all: &mut Labelled,
    plain: impl Iterator<Item = Instruction>,
    shared: u64,
) -> Result<(), IcedError> {
    use Register::{RCX, RIP};
    let wanted = MemoryOperand::with_base_displ(RIP, shared.cast_signed());
    let [closed, open] = std::array::from_fn(|_| all.label());
    let restore = || Ok([Instruction::with1(Code::Pop_r64, RCX)?, stack(RED_ZONE)?]);
    all.extend([
        stack(-RED_ZONE)?,
        Instruction::with1(Code::Push_r64, RCX)?,
        Instruction::with2(Code::Mov_r64_rm64, RCX, wanted)?,
        Instruction::with_branch(Code::Jrcxz_rel8_64, closed)?,
        Instruction::with_branch(Code::Jmp_rel32_64, open)?,
    ]);
    all.mark(closed);
    all.extend(restore()?);
    plain.for_each(|one| all.add(one));
    all.mark(open);
    all.extend(restore()?);
    Ok(())
}

/// As [`closed_at_once`], in half the time, where flags may change.
fn closed_by_flags(
    all: &mut Labelled,
    plain: impl Iterator<Item = Instruction>,
    shared: u64,
) -> Result<(), IcedError> {
    let wanted = MemoryOperand::with_base_displ(Register::RIP, shared.cast_signed());
    let open = all.label();
    all.extend([
        Instruction::with2(Code::Cmp_rm64_imm8, wanted, 0)?,
        Instruction::with_branch(Code::Jne_rel32_64, open)?,
    ]);
    plain.for_each(|one| all.add(one));
    all.mark(open);
    Ok(())
}

/// Adds the instructions before `until`, each after its requested records.
fn observed(
    all: &mut Labelled,
    instructions: &[Instruction],
    until: u64,
    bias: u64,
    requests: &[(Request, u32)],
    shared: u64,
) -> Result<(), NoTrampoline> {
    let mut seen = 0;
    for instruction in instructions {
        let address = instruction.ip();
        for (request, number) in requests.iter().filter(|(w, _)| bias.wrapping_add(w.at) == address)
        {
            match request.what {
                What::Latency { width, bits } => {
                    time(all, instruction, width, bits, *number, shared)?;
                }
                What::Registers { mask } => {
                    registers(all, mask, *number, shared)?;
                }
                What::Allocated { call } => {
                    allocated(all, call, *number, shared)?;
                }
                What::Marked { argument, process } => {
                    marked(all, argument, process, *number, shared)?;
                }
                what => {
                    let value = value(what, instruction)?;
                    record(all, &value, *number, shared)?;
                }
            }
            seen += 1;
        }
        if address < until {
            all.add(*instruction);
        }
    }
    match seen == requests.len() {
        true => Ok(()),
        false => Err(NoTrampoline::OtherCode),
    }
}

/// Adds the code that records an instruction. A closed gate changes no flag; for an open one flags
/// are saved: all but OF by `lahf`, OF by `seto`. A signal may come between any two instructions.
fn record(
    all: &mut Labelled,
    value: &[Instruction],
    number: u32,
    shared: u64,
) -> Result<(), IcedError> {
    use Register::{RAX, RCX, RIP, RSP};
    let wanted = MemoryOperand::with_base_displ(RIP, shared.cast_signed());
    let saved = MemoryOperand::with_base_displ(RSP, 8);
    let closed = all.label();
    let gate = [
        stack(-RED_ZONE)?,
        Instruction::with1(Code::Push_r64, RCX)?,
        Instruction::with2(Code::Mov_r64_rm64, RCX, wanted)?,
        Instruction::with_branch(Code::Jrcxz_rel8_64, closed)?,
        Instruction::with1(Code::Push_r64, RAX)?,
        Instruction::with2(Code::Mov_r64_rm64, RCX, saved)?,
    ];
    all.extend(gate.into_iter().chain(value.iter().copied()));
    all.add(Instruction::with1(Code::Push_r64, RAX)?);
    all.extend(push_flags()?);
    take(all, number, shared, 8)?;
    all.extend(pop_flags()?);
    all.extend([stack(8)?, Instruction::with1(Code::Pop_r64, RAX)?]);
    all.mark(closed);
    all.extend([Instruction::with1(Code::Pop_r64, RCX)?, stack(RED_ZONE)?]);
    Ok(())
}
