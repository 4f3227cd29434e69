//! The state that must be restored before the copies of a block.

use iced_x86::{CpuidFeature, Mnemonic, Register};
use isa::code::{Block, Inst};

/// State to restore for a block.
#[derive(Debug, Clone, Default)]
pub struct RequiredState {
    pub(super) vectors: Option<Width>,
    pub(crate) vector_inputs: Vec<u8>,
    pub(super) mmx_inputs: Vec<u8>,
    pub(super) masks: bool,
    pub(super) x87: bool,
    pub(super) direction: bool,
    pub(super) mxcsr: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Xmm,
    Ymm,
    Zmm,
}

impl RequiredState {
    /// The state that the block's instructions need.
    pub fn of(block: &Block) -> Self {
        let has = |mnemonics: &[Mnemonic]| {
            block.instructions.iter().any(|i| mnemonics.contains(&i.decoded.mnemonic()))
        };
        let vector = block.uses(Register::is_vector_register);
        let evex = block
            .instructions
            .iter()
            .any(|i| i.decoded.op_code().encoding() == iced_x86::EncodingKind::EVEX);
        let vex = block.instructions.iter().any(|i| {
            i.decoded.op_code().encoding() != iced_x86::EncodingKind::Legacy
                && i.registers.iter().any(|r| r.register().is_vector_register())
        });
        let x87 = block.uses(Register::is_st) || block.instructions.iter().any(uses_x87);
        Self {
            vectors: vector.then_some(match (evex, vex) {
                (true, _) => Width::Zmm,
                (_, true) => Width::Ymm,
                _ => Width::Xmm,
            }),
            vector_inputs: inputs(block, Register::is_vector_register),
            // Both share their registers; x87 code finds its own stack.
            mmx_inputs: if x87 { Vec::new() } else { inputs(block, Register::is_mm) },
            masks: block.uses(Register::is_k),
            x87,
            direction: has(&[Mnemonic::Std]),
            mxcsr: has(&[Mnemonic::Ldmxcsr, Mnemonic::Vldmxcsr]),
        }
    }

    /// The state of code whose instructions run in any order: every register that they use.
    pub fn of_region(block: &Block) -> Self {
        let numbers = |kind: fn(Register) -> bool| {
            let used = block.instructions.iter().flat_map(|i| &i.registers).map(|r| r.register());
            let mut all: Vec<u8> = used.filter(|r| kind(*r)).map(|r| r.number() as u8).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let own = Self::of(block);
        let mmx_inputs = if own.x87 { Vec::new() } else { numbers(Register::is_mm) };
        Self { vector_inputs: numbers(Register::is_vector_register), mmx_inputs, ..own }
    }
}

/// Whether it needs the x87 state, if it names none of its registers: `fldcw`, `fninit`, `fxsave`.
fn uses_x87(one: &Inst) -> bool {
    use CpuidFeature::{FPU, FPU287, FPU387, FXSR};
    let needs = one.decoded.cpuid_features();
    needs.iter().any(|feature| [FPU, FPU287, FPU387, FXSR].contains(feature))
}

/// Numbers of the registers of a kind that are read before they are written.
fn inputs(block: &Block, kind: impl Fn(Register) -> bool) -> Vec<u8> {
    let (mut written, mut inputs) = (Vec::new(), Vec::new());
    for inst in &block.instructions {
        let own = || inst.registers.iter().filter(|r| kind(r.register()));
        for used in own() {
            let number = used.register().number() as u8;
            let fresh = !written.contains(&number) && !inputs.contains(&number);
            if fresh && Inst::reads(used.access()) {
                inputs.push(number);
            }
        }
        written.extend(
            own().filter(|r| !Inst::reads(r.access())).map(|r| r.register().number() as u8),
        );
    }
    inputs
}
