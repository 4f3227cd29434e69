//! The trampoline of an observer: while the gate is open, a record of what an instruction is about to
//! do; then the instructions themselves, and a jump back.
//!
//! Memory shared with this process holds a count of records that are still wanted, and the records.
//! While it is 0, a probe only looks at it: that is the gate, which is opened from outside. Records
//! are written from the last to the first, each by whoever has taken its number (`lock xadd`), so that
//! they are in the order of execution, in all threads.

use super::allocated::allocated;
use super::labelled::Labelled;
use super::marked::marked;
use super::pieces::{RED_ZONE, goes_on, jump, memory, pop_flags, push_flags, stack};
use super::records::take;
use super::registers::registers;
use super::timed::time;
use crate::plan::{Observer, What, Wish};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, ConditionCode, Decoder, DecoderOptions, IcedError,
    Instruction, InstructionBlock, MemoryOperand, OpKind, Register,
};

/// An observer as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observing {
    /// The trampoline.
    pub trampoline: Vec<u8>,
    /// What replaces the first bytes of the code.
    pub jump: Vec<u8>,
}

/// Most bytes of a trampoline of so many parts ([`What::parts`]) and instructions: those of a part were
/// counted, an instruction has 15 or less, or is a jump with 6 instead of 2.
pub fn most(parts: usize, instructions: usize) -> u64 {
    128 * parts as u64 + 15 * instructions as u64 + 5
}

/// The bytes of an observer in code that runs at `bias` + p_vaddr. `code` are the bytes from its first
/// instruction on, `wishes` its wishes with their numbers in the records; `shared` and `trampoline` are
/// addresses in the process.
///
/// # Errors
/// Something is too far away, cannot be encoded elsewhere or cannot be observed.
pub fn emit_observer(
    observer: &Observer,
    code: &[u8],
    bias: u64,
    wishes: &[(Wish, u32)],
    shared: u64,
    trampoline: u64,
) -> Result<Observing, String> {
    let failed = |e: IcedError| format!("its instructions cannot be moved: {e}");
    let at = bias.wrapping_add(observer.at);
    let until = bias.wrapping_add(observer.until);
    let mut all = Labelled::default();
    let (mut displaced, mut seen) = (Vec::new(), 0);
    for instruction in Decoder::with_ip(64, code, at, DecoderOptions::NONE) {
        let address = instruction.ip();
        for (wish, number) in wishes.iter().filter(|(w, _)| bias.wrapping_add(w.at) == address) {
            match wish.what {
                What::Latency { width, bits } => {
                    let how = (width, bits);
                    time(&mut all, &instruction, how, *number, shared)?.map_err(failed)?;
                }
                What::Registers { mask } => {
                    registers(&mut all, mask, *number, shared)?.map_err(failed)?;
                }
                What::Allocated { call } => {
                    allocated(&mut all, call, *number, shared).map_err(failed)?;
                }
                What::Marked { argument, process } => {
                    marked(&mut all, (argument, process), *number, shared).map_err(failed)?;
                }
                what => {
                    let value = value(what, &instruction)?.map_err(failed)?;
                    record(&mut all, &value, *number, shared).map_err(failed)?;
                }
            }
            seen += 1;
        }
        // A call stays where it is: it is seen before.
        if address >= until {
            break;
        }
        displaced.push(instruction);
        all.add(instruction);
    }
    if seen != wishes.len() {
        return Err("its instructions are not those of the plan".to_owned());
    }
    if goes_on(&displaced) {
        all.add(Instruction::with_branch(Code::Jmp_rel32_64, until).map_err(failed)?);
    }
    let block = InstructionBlock::new(&all.instructions, trampoline);
    let encoded = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE).map_err(failed)?;
    let parts = wishes.iter().map(|(wish, _)| wish.what.parts()).sum();
    if encoded.code_buffer.len() as u64 > most(parts, displaced.len()) {
        return Err("its trampoline is too long".to_owned());
    }
    let jump = jump(observer.kind, at..bias.wrapping_add(observer.next), trampoline)?;
    Ok(Observing { trampoline: encoded.code_buffer, jump })
}

/// Adds what records an instruction. While the gate is closed no flag changes, and while it is open
/// they are saved: all but OF by `lahf`, OF by `seto`. A signal may come between any two instructions.
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

/// What the stack pointer is below its value in the program where a value is taken.
const BELOW: i64 = RED_ZONE + 16;

/// The instructions that put what is observed into rax. All other registers and the flags are those of
/// the program, and stay, but for the stack pointer.
fn value(
    what: What,
    instruction: &Instruction,
) -> Result<Result<Vec<Instruction>, IcedError>, String> {
    match what {
        What::Outcome => {
            let set = condition(instruction).ok_or("it is no conditional jump on flags")?;
            Ok(Instruction::with1(set, Register::AL).and_then(|set| {
                let wide = Code::Movzx_r32_rm8;
                Ok(vec![set, Instruction::with2(wide, Register::EAX, Register::AL)?])
            }))
        }
        What::Target => {
            let is_plain = matches!(instruction.code(), Code::Jmp_rm64 | Code::Call_rm64);
            if !is_plain {
                return Err("it is no indirect jump or call within a segment".to_owned());
            }
            let load = match instruction.op0_kind() {
                OpKind::Memory => {
                    let memory = memory(instruction, BELOW)?;
                    Instruction::with2(Code::Mov_r64_rm64, Register::RAX, memory)
                }
                _ if instruction.op0_register() == Register::RSP => {
                    return Err("it jumps to the stack".to_owned());
                }
                _ => {
                    let from = instruction.op0_register();
                    Instruction::with2(Code::Mov_r64_rm64, Register::RAX, from)
                }
            };
            Ok(load.map(|load| vec![load]))
        }
        What::Address => {
            let memory = memory(instruction, BELOW)?;
            Ok(Instruction::with2(Code::Lea_r64_m, Register::RAX, memory).map(|lea| vec![lea]))
        }
        What::Value { width } => {
            let memory = memory(instruction, BELOW)?;
            let (code, to) = match width {
                1 => (Code::Movzx_r32_rm8, Register::EAX),
                2 => (Code::Movzx_r32_rm16, Register::EAX),
                4 => (Code::Mov_r32_rm32, Register::EAX),
                _ => (Code::Mov_r64_rm64, Register::RAX),
            };
            Ok(Instruction::with2(code, to, memory).map(|load| vec![load]))
        }
        What::Entered => {
            let at = |displacement| MemoryOperand::with_base_displ(Register::RSP, displacement);
            let code = || {
                Ok(vec![
                    Instruction::with2(Code::Lea_r64_m, Register::RAX, at(BELOW))?,
                    Instruction::with1(Code::Bswap_r64, Register::RAX)?,
                    Instruction::with2(Code::Mov_r16_rm16, Register::AX, at(BELOW))?,
                ])
            };
            Ok(code())
        }
        What::Latency { .. }
        | What::Registers { .. }
        | What::Allocated { .. }
        | What::Marked { .. } => Err("it has a record of its own".to_owned()),
    }
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
