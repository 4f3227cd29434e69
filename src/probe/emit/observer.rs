//! The trampoline of an observer: while the gate is open, a record of what an instruction is about to
//! do; then the instructions themselves, and a jump back.
//!
//! Memory shared with this process holds a count of records that are still wanted, and the records.
//! While it is 0, a probe only looks at it: that is the gate, which is opened from outside. Records
//! are written from the last to the first, each by whoever has taken its number (`lock xadd`), so that
//! they are in the order of execution, in all threads.

use super::pieces::{OVERFLOW, RED_ZONE, goes_on, jump, stack};
use crate::plan::{Observer, PAGE, What, Wish};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, ConditionCode, Decoder, DecoderOptions, IcedError,
    Instruction, InstructionBlock, MemoryOperand, OpKind, Register,
};

/// Bytes of a record: number of the wish + 1 and page of the stack (32 bits each), and a value.
pub const RECORD: u64 = 16;
/// Where the first record is, after the count of those that are wanted.
pub const RECORDS: u64 = PAGE;
/// Bytes of a page as a power of two.
const PAGE_BITS: u32 = 12;

/// An observer as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observing {
    /// The trampoline.
    pub trampoline: Vec<u8>,
    /// What replaces the first bytes of the code.
    pub jump: Vec<u8>,
}

/// Most bytes of a trampoline of so many wishes and instructions: those of one wish were counted, an
/// instruction has 15 or less, or is a jump with 6 instead of 2.
pub fn most(wishes: usize, instructions: usize) -> u64 {
    128 * wishes as u64 + 15 * instructions as u64 + 5
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
            let value = value(wish.what, &instruction)?;
            record(&mut all, &value.map_err(failed)?, *number, shared).map_err(failed)?;
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
    if encoded.code_buffer.len() as u64 > most(wishes.len(), displaced.len()) {
        return Err("its trampoline is too long".to_owned());
    }
    let jump = jump(observer.kind, at..bias.wrapping_add(observer.next), trampoline)?;
    Ok(Observing { trampoline: encoded.code_buffer, jump })
}

/// Instructions, of which some can be jumped to: a label is an address that no code has.
#[derive(Default)]
struct Labelled {
    instructions: Vec<Instruction>,
    labels: u64,
    /// The label of the next instruction.
    next: u64,
}

impl Labelled {
    /// Adds an instruction, without its old address: a jump to it goes by the patch, not by its copy.
    fn add(&mut self, mut instruction: Instruction) {
        instruction.set_ip(std::mem::take(&mut self.next));
        self.instructions.push(instruction);
    }

    fn label(&mut self) -> u64 {
        self.labels += 1;
        self.labels
    }
}

/// Adds what records an instruction. While the gate is closed no flag changes, and while it is open
/// they are saved: all but OF by `lahf`, OF by `seto`. A signal may come between any two instructions.
fn record(
    all: &mut Labelled,
    value: &[Instruction],
    number: u32,
    shared: u64,
) -> Result<(), IcedError> {
    use Register::{AL, EAX, RAX, RCX, RIP, RSP};
    let wanted = MemoryOperand::with_base_displ(RIP, shared.cast_signed());
    let before_first = (shared + RECORDS - RECORD).cast_signed();
    let before_first = MemoryOperand::with_base_displ(RIP, before_first);
    let at = |base, displacement| MemoryOperand::with_base_displ(base, displacement);
    let (full, done, closed) = (all.label(), all.label(), all.label());
    let gate = [
        stack(-RED_ZONE)?,
        Instruction::with1(Code::Push_r64, RCX)?,
        Instruction::with2(Code::Mov_r64_rm64, RCX, wanted)?,
        Instruction::with_branch(Code::Jrcxz_rel8_64, closed)?,
        Instruction::with1(Code::Push_r64, RAX)?,
        Instruction::with2(Code::Mov_r64_rm64, RCX, at(RSP, 8))?,
    ];
    let take = [
        Instruction::with1(Code::Push_r64, RAX)?,
        Instruction::with(Code::Lahf),
        Instruction::with1(Code::Seto_rm8, AL)?,
        Instruction::with1(Code::Push_r64, RAX)?,
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
        Instruction::with2(Code::Mov_r64_rm64, RAX, at(RSP, 8))?,
        Instruction::with2(Code::Mov_rm64_r64, at(RCX, 8), RAX)?,
        Instruction::with2(Code::Mov_r64_rm64, RAX, RSP)?,
        Instruction::with2(Code::Shr_rm64_imm8, RAX, PAGE_BITS)?,
        Instruction::with2(Code::Mov_rm32_r32, at(RCX, 4), EAX)?,
        // Last: a record with a number is complete.
        Instruction::with2(Code::Mov_rm32_imm32, at(RCX, 0), number + 1)?,
        Instruction::with_branch(Code::Jmp_rel8_64, done)?,
    ];
    gate.into_iter().chain(value.iter().copied()).chain(take).for_each(|one| all.add(one));
    all.next = full;
    // Another thread has taken the last one.
    all.add(Instruction::with2(Code::Mov_rm64_imm32, wanted, 0)?);
    all.next = done;
    for one in [
        Instruction::with1(Code::Pop_r64, RAX)?,
        Instruction::with2(Code::Add_rm8_imm8, AL, OVERFLOW)?,
        Instruction::with(Code::Sahf),
        stack(8)?,
        Instruction::with1(Code::Pop_r64, RAX)?,
    ] {
        all.add(one);
    }
    all.next = closed;
    all.add(Instruction::with1(Code::Pop_r64, RCX)?);
    all.add(stack(RED_ZONE)?);
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
                    let memory = memory(instruction)?;
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
    }
}

/// The memory operand of an instruction, where the stack pointer is [`BELOW`] that of the program.
fn memory(instruction: &Instruction) -> Result<MemoryOperand, String> {
    let base = instruction.memory_base();
    if matches!(base, Register::ESP | Register::EIP) {
        return Err("its address has 32 bits".to_owned());
    }
    let displacement = instruction.memory_displacement64().cast_signed();
    let below = if base == Register::RSP { BELOW } else { 0 };
    Ok(MemoryOperand::new(
        base,
        instruction.memory_index(),
        instruction.memory_index_scale(),
        displacement.wrapping_add(below),
        // The shortest that fits; the encoder needs to know that there is one.
        u32::from(base != Register::None && displacement != 0 || below != 0).max(1),
        false,
        instruction.segment_prefix(),
    ))
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
