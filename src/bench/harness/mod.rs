//! Generates the code of a run: set-up, copies of the block, loop, time stamps.
//!
//! | file | concern |
//! |---|---|
//! | `emitter` | encodes instructions at offsets of the region |
//! | `loop_counter` | how the loop form counts, and the entries into code with its own jumps |
//! | `tracing` | the registers that are traced; `xchg` without its lock |
//! | `builder`, `forms` | parts of the code, the forms built from them |
//! | `region`, `relaid` | code with its own jumps, moved to another address, or laid out anew |
//! | `skeleton` | the front-end skeleton: instructions of the same lengths that only take slots |
//!
//! Here: the specification of a form's code, the state restored before the copies, and the resulting program.

pub(crate) mod builder;
pub(crate) mod emitter;
pub(crate) mod forms;
pub(crate) mod loop_counter;
pub(crate) mod region;
pub(crate) mod relaid;
pub(crate) mod skeleton;
pub(super) mod tracing;

use iced_x86::{CpuidFeature, Mnemonic, Register};
use isa::code::{Block, Inst};
use tracing::Slot;

/// The specification of a form.
#[derive(Debug, Clone)]
pub struct Shape<'a> {
    /// The block.
    pub block: &'a Block,
    /// State to restore.
    pub required_state: &'a RequiredState,
    /// Copies of the block.
    pub copies: usize,
    /// Whether memory lines must be restored.
    pub lines: bool,
    /// Registers (encoding numbers) to reinitialise before every copy but the first.
    pub reseeded: &'a [u8],
    /// For each copy, whether its final conditional jump is taken.
    pub taken: &'a [bool],
    /// Offset of the code in the region.
    pub start: usize,
    /// Where `[rip+x]` points, from the start of the region.
    pub rip_area: usize,
}

/// Code ready to be written to the region.
#[derive(Debug, Clone)]
pub struct Program {
    /// Offset of the code in the region.
    pub start: usize,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Offset, copy and instruction of every instruction of the block.
    pub origins: Vec<(usize, usize, usize)>,
    /// Registers that a trace stores, in the order of the code.
    pub slots: Vec<Slot>,
    /// Bytes of the trace.
    pub traced: usize,
    /// Where a trace stores whether the final jump is taken, one byte per copy.
    pub conditions: usize,
}

impl Program {
    /// The copy and instruction at an offset in the region.
    pub fn origin(&self, offset: usize) -> Option<(usize, usize)> {
        let next = self.origins.partition_point(|(at, ..)| *at <= offset);
        let (_, copy, inst) = self.origins.get(next.checked_sub(1)?)?;
        Some((*copy, *inst))
    }

    /// Offset of the first byte after it.
    pub fn end(&self) -> usize {
        self.start + self.bytes.len()
    }
}

/// State to restore for a block.
#[derive(Debug, Clone, Default)]
pub struct RequiredState {
    vectors: Option<Width>,
    pub(crate) vector_inputs: Vec<u8>,
    mmx_inputs: Vec<u8>,
    masks: bool,
    x87: bool,
    direction: bool,
    mxcsr: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
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
