//! The trampoline of a count: `inc`, the displaced instructions, a jump back.

use super::pieces::{OVERFLOW, RED_ZONE, goes_on, jump, stack};
use crate::plan::{Kind, Site};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, IcedError, Instruction,
    InstructionBlock, MemoryOperand, Register,
};

/// A probe as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The trampoline.
    pub trampoline: Vec<u8>,
    /// Where in it are the prefixes of `inc`: `0x3e`, without effect, for which `lock` can be put.
    pub prefixes: Vec<usize>,
    /// What replaces the first bytes of the code.
    pub jump: Vec<u8>,
}

/// The bytes of a probe in code that runs at `bias` + p_vaddr. `code` are the bytes of the displaced
/// instructions, `trampoline` and what `counter` gives for a block are addresses in the process.
///
/// # Errors
/// Something is too far away, or cannot be encoded elsewhere.
pub fn emit(
    site: &Site,
    code: &[u8],
    bias: u64,
    counter: impl Fn(usize) -> u64,
    trampoline: u64,
) -> Result<Patch, String> {
    let failed = |e: IcedError| format!("its instructions cannot be moved: {e}");
    let at = bias.wrapping_add(site.at);
    let mut all = Vec::new();
    let mut counts = Vec::new();
    let mut add = |all: &mut Vec<Instruction>, block, keeps_flags| {
        let (own, inc) = counting(counter(block), keeps_flags).map_err(failed)?;
        counts.push(all.len() + inc);
        all.extend(own);
        Ok::<(), String>(())
    };
    add(&mut all, site.block, site.keeps_flags)?;
    let decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
    let displaced: Vec<Instruction> = decoder.into_iter().collect();
    if site.kind == Kind::Retarget {
        let target = displaced.first().map_or(0, Instruction::near_branch_target);
        all.push(Instruction::with_branch(Code::Jmp_rel32_64, target).map_err(failed)?);
    } else {
        for instruction in &displaced {
            let address = instruction.ip().wrapping_sub(bias);
            if let Some(then) = site.then.iter().find(|then| then.at == address) {
                add(&mut all, then.block, then.keeps_flags)?;
            }
            all.push(*instruction);
        }
        if goes_on(&displaced) {
            let back = bias.wrapping_add(site.next);
            all.push(Instruction::with_branch(Code::Jmp_rel32_64, back).map_err(failed)?);
        }
    }
    // Without addresses of their own: a jump to a displaced instruction goes by the patch, not by its copy.
    all.iter_mut().for_each(|instruction| instruction.set_ip(0));
    let block = InstructionBlock::new(&all, trampoline);
    let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
    let encoded = BlockEncoder::encode(64, block, options).map_err(failed)?;
    let offset = |count: usize| encoded.new_instruction_offsets.get(count).map(|at| *at as usize);
    let prefixes: Vec<usize> = counts.into_iter().filter_map(offset).collect();
    let is_prefix = |at: &usize| encoded.code_buffer.get(*at) == Some(&0x3e);
    if prefixes.len() != site.then.len() + 1 || !prefixes.iter().all(is_prefix) {
        return Err("its count cannot be encoded".to_owned());
    }
    let jump = jump(site.kind, at..bias.wrapping_add(site.next), trampoline)?;
    Ok(Patch { trampoline: encoded.code_buffer, prefixes, jump })
}

/// The instructions that count, and which of them is the `inc`.
///
/// To keep the flags: the red zone is left by `lea`, `lahf` saves all flags but OF, which `seto`
/// saves; a signal may come between any two of them.
fn counting(counter: u64, keeps_flags: bool) -> Result<(Vec<Instruction>, usize), IcedError> {
    use Register::{AL, RAX, RIP};
    let cell = MemoryOperand::with_base_displ(RIP, counter.cast_signed());
    let mut inc = Instruction::with1(Code::Inc_rm64, cell)?;
    inc.set_segment_prefix(Register::DS);
    if !keeps_flags {
        return Ok((vec![inc], 0));
    }
    let all = vec![
        stack(-RED_ZONE)?,
        Instruction::with1(Code::Push_r64, RAX)?,
        Instruction::with(Code::Lahf),
        Instruction::with1(Code::Seto_rm8, AL)?,
        inc,
        Instruction::with2(Code::Add_rm8_imm8, AL, OVERFLOW)?,
        Instruction::with(Code::Sahf),
        Instruction::with1(Code::Pop_r64, RAX)?,
        stack(RED_ZONE)?,
    ];
    Ok((all, 4))
}
