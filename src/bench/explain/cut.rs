//! Cutting chains: instructions that give a register a value anew, whatever was in it.

use crate::Values;
use iced_x86::{Code, Encoder, EncodingKind, Instruction, Register};
use isa::code::{Block, Inst};
use isa::deps::Analysis;
use isa::effects::ArchReg;

/// Registers and flags that are cut, at most: each costs a slot.
const MOST: usize = 12;

/// Instructions that cut every chain through registers and flags where it comes back, but for the
/// places to `keep`; `None` if there is none, or none that can be cut. The stack pointer stays:
/// addresses are made of it.
pub fn cuts(
    analysis: &Analysis,
    values: &Values,
    block: &Block,
    keep: &[ArchReg],
) -> Option<Vec<u8>> {
    let recurring = analysis.recurrences.iter().flat_map(|r| &r.path);
    let slowest = recurring.filter(|way| way.delta > 0).filter_map(|way| way.reg);
    // What reads nothing that the block computes ends a chain by itself: the mask of a gather that
    // is set to ones anew would be another value.
    let reads = |writer: usize| {
        analysis.register_deps.iter().any(|link| link.reader == writer)
            || analysis.memory.dependencies.iter().any(|carried| carried.reader == writer)
    };
    let back = analysis.register_deps.iter().filter(|link| link.delta > 0 && reads(link.writer));
    let others = back.map(|link| link.reg);
    let mut regs: Vec<ArchReg> = Vec::new();
    for reg in slowest.chain(others) {
        if !regs.contains(&reg) && reg != ArchReg::gpr(4) && !keep.contains(&reg) {
            regs.push(reg);
        }
    }
    regs.truncate(MOST);
    let mut cuts: Vec<Vec<u8>> = regs.iter().filter_map(|p| cut(*p, values, block)).collect();
    // One instruction sets all flags.
    let mut seen = Vec::new();
    cuts.retain(|cut| {
        !seen.contains(cut) && {
            seen.push(cut.clone());
            true
        }
    });
    (!analysis.recurrences.is_empty() && !cuts.is_empty()).then(|| cuts.concat())
}

/// An instruction that gives `place` a value anew: a general-purpose register the one that it
/// starts with, a vector 0, flags anything.
pub fn cut(reg: ArchReg, values: &Values, block: &Block) -> Option<Vec<u8>> {
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

    /// The block's recurrences, as it is and with its cuts before it.
    fn before_and_after(hex: &str) -> (usize, usize) {
        let bytes = isa::code::parse_hex(hex).unwrap();
        let search = || Settings { window: 64, runs: 2, initial_values: Vec::new() };
        let analyse = |b: &[u8]| {
            Analyser::default()
                .analyse(&Analysed::of_bytes(b, tma::Core::default().facts()).unwrap(), &search())
        };
        let own = analyse(&bytes);
        let block = Block::decode(&bytes).unwrap();
        let cuts = cuts(&own, &Values::default(), &block, &[]).unwrap();
        (own.recurrences.len(), analyse(&[cuts, bytes].concat()).recurrences.len())
    }

    // VEX alone: a legacy `xorps` keeps the upper half of its register, which the finder counts as one
    // place.
    #[test]
    fn no_recurrence_survives_its_cuts() {
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
