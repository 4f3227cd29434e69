//! Variants of a block that differ from it in one respect, and the instructions that break its dependencies.

use crate::Values;
use crate::harness::skeleton::Filler;
use iced_x86::{Code, Encoder, EncodingKind, Instruction, Register};
use isa::code::{Block, Inst};
use isa::deps::Analysis;
use isa::effects::ArchReg;

/// A variant and how many iterations of the original block it holds.
pub struct Variant {
    pub block: Block,
    pub copies: usize,
}

/// Bytes of a filler: long enough that 64 bytes of code hold no more operations than an op cache
/// accepts for them.
const FILLER: usize = 5;

/// The block with `count` fillers spread evenly among its instructions, except between the last two, which may be
/// macro-fused.
pub fn padded(block: &Block, count: usize, filler: Filler) -> Option<Block> {
    let instructions = &block.instructions;
    let tail = if block.final_branch().is_some() { 2 } else { 0 };
    let places = instructions.len().saturating_sub(tail).max(1);
    let mut bytes = Vec::with_capacity(block.bytes.len() + FILLER * count);
    for (i, inst) in instructions.iter().enumerate() {
        if i < places {
            let fillers = (i + 1) * count / places - i * count / places;
            bytes.extend(std::iter::repeat_n(filler.bytes(FILLER), fillers).flatten());
        }
        bytes.extend(&inst.bytes);
    }
    Block::decode(&bytes).ok().filter(|b| b.instructions.len() == instructions.len() + count)
}

/// The block without the jump at its end; `None` if there is none, or nothing else.
pub fn body(block: &Block) -> Option<Block> {
    let jump = block.final_branch()?;
    Block::decode(&block.bytes[..jump.offset]).ok()
}

/// The block with `bytes` before it.
pub fn preceded(bytes: &[u8], block: &Block) -> Option<Block> {
    Block::decode(&[bytes, &block.bytes].concat()).ok()
}

/// The block without its instruction `index`; `None` if it is the only one.
pub fn without(block: &Block, index: usize) -> Option<Block> {
    let inst = block.instructions.get(index)?;
    let end = inst.offset + inst.bytes.len();
    let bytes = [&block.bytes[..inst.offset], &block.bytes[end..]].concat();
    Block::decode(&bytes).ok()
}

/// Nops that make issue slots the bound: 1.5 times `cycles` at `width` slots per cycle. `None` if that exceeds an
/// op cache.
pub fn filling_nops(cycles: f64, width: u32, instructions: usize) -> Option<usize> {
    const MAX_SLOTS: usize = 400;
    let slots = (1.5 * cycles * f64::from(width)).ceil();
    (slots.is_finite() && slots <= MAX_SLOTS as f64)
        .then(|| (slots as usize).saturating_sub(instructions).max(instructions / 2).max(4))
}

/// Most registers and flags whose dependencies are broken: each costs an issue slot.
const MAX_BREAKERS: usize = 12;

/// Instructions that break every loop-carried dependency through registers and flags, except through
/// those to `keep` and the stack pointer; `None` if there is none that can be broken.
pub fn breakers(
    analysis: &Analysis,
    values: &Values,
    block: &Block,
    keep: &[ArchReg],
) -> Option<Vec<u8>> {
    let recurring = analysis.recurrences.iter().flat_map(|r| &r.path);
    let slowest = recurring.filter(|step| step.delta > 0).filter_map(|step| step.reg);
    // A writer that depends on nothing in the block breaks the dependency itself; overwriting its
    // result might change behaviour, as for the mask of a gather.
    let reads = |writer: usize| {
        analysis.register_deps.iter().any(|dep| dep.reader == writer)
            || analysis.memory.dependencies.iter().any(|dep| dep.reader == writer)
    };
    let carried = analysis.register_deps.iter().filter(|dep| dep.delta > 0 && reads(dep.writer));
    let others = carried.map(|dep| dep.reg);
    let mut regs: Vec<ArchReg> = Vec::new();
    for reg in slowest.chain(others) {
        if !regs.contains(&reg) && reg != ArchReg::gpr(4) && !keep.contains(&reg) {
            regs.push(reg);
        }
    }
    regs.truncate(MAX_BREAKERS);
    let mut breakers: Vec<Vec<u8>> = Vec::new();
    for bytes in regs.iter().filter_map(|reg| breaker(*reg, values, block)) {
        // One instruction sets all flags.
        if !breakers.contains(&bytes) {
            breakers.push(bytes);
        }
    }
    (!analysis.recurrences.is_empty() && !breakers.is_empty()).then(|| breakers.concat())
}

/// An instruction that overwrites `reg`: a general-purpose register with its initial value, a vector
/// with 0, flags with anything.
pub fn breaker(reg: ArchReg, values: &Values, block: &Block) -> Option<Vec<u8>> {
    let made = if reg.is_flag() {
        Instruction::with2(Code::Test_rm32_r32, Register::ESP, Register::ESP).ok()?
    } else if let Some(number) = reg.as_gpr() {
        let (value, number) = (values.registers[usize::from(number)], u32::from(number));
        match u32::try_from(value) {
            Ok(short) => Instruction::with2(Code::Mov_r32_imm32, Register::EAX + number, short),
            Err(_) => Instruction::with2(Code::Mov_r64_imm64, Register::RAX + number, value),
        }
        .ok()?
    } else {
        let number = reg.index().checked_sub(ArchReg::vector(0).index()).filter(|n| *n < 16)?;
        let register = Register::XMM0 + u32::try_from(number).ok()?;
        let is_legacy = |i: &Inst| i.decoded.op_code().encoding() == EncodingKind::Legacy;
        match block.instructions.iter().all(is_legacy) {
            true => Instruction::with2(Code::Xorps_xmm_xmmm128, register, register).ok()?,
            false => {
                let code = Code::VEX_Vxorps_xmm_xmm_xmmm128;
                Instruction::with3(code, register, register, register).ok()?
            }
        }
    };
    let mut encoder = Encoder::new(64);
    encoder.encode(&made, 0).ok()?;
    Some(encoder.take_buffer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::deps::memory::Settings;
    use isa::deps::{Analyser, Code as Analysed};

    #[test]
    fn nops_are_spread_and_leave_a_fused_pair_alone() {
        let block = Block::decode(&isa::code::parse_hex("4801d8 4801d9 4839cf 72f5").unwrap());
        let padded = padded(&block.unwrap(), 4, Filler::Nop).unwrap();
        let texts: Vec<_> = padded
            .instructions
            .iter()
            .map(|i| i.text.split(' ').next().unwrap().to_owned())
            .collect();
        assert_eq!(texts, ["nop", "nop", "add", "nop", "nop", "add", "cmp", "jb"]);
    }

    #[test]
    fn as_many_nops_as_the_time_asks_for() {
        assert_eq!(filling_nops(3.0, 6, 3), Some(24));
        assert_eq!(filling_nops(0.25, 4, 1), Some(4));
        assert_eq!(filling_nops(100.0, 6, 3), None);
    }

    /// Loop-carried dependencies of the block, without and with breakers.
    fn before_and_after(hex: &str) -> (usize, usize) {
        let bytes = isa::code::parse_hex(hex).unwrap();
        let search = || Settings { window: 64, runs: 2, initial_values: Vec::new() };
        let analyse = |b: &[u8]| {
            Analyser::default()
                .analyse(&Analysed::of_bytes(b, tma::Core::default().facts()).unwrap(), &search())
        };
        let own = analyse(&bytes);
        let block = Block::decode(&bytes).unwrap();
        let breakers = breakers(&own, &Values::default(), &block, &[]).unwrap();
        (own.recurrences.len(), analyse(&[breakers, bytes].concat()).recurrences.len())
    }

    // VEX only: a legacy `xorps` keeps the upper half of its register, which the analyser treats as one
    // register.
    #[test]
    fn no_loop_carried_dependency_survives_its_breakers() {
        for hex in [
            "480fafc0",            // imul rax,rax
            "c5fb58c1 c4e2f9b8c2", // vaddsd, vfmadd231pd
            "4811d8 4811cb",       // adc on the carry
        ] {
            let (before, after) = before_and_after(hex);
            assert!(before > 0, "{hex}");
            assert_eq!(after, 0, "{hex}");
        }
    }
}
