//! Generates the code of a run: set-up, copies of the block, loop, time stamps.
//!
//! | file | concern |
//! |---|---|
//! | `emitter` | encodes instructions at offsets of the region |
//! | `loop_counter` | how the loop form counts, and the entries into code with its own jumps |
//! | `builder`, `forms` | parts of the code, the forms built from them |
//! | `region`, `relaid` | code with its own jumps, moved to another address, or laid out anew |
//! | `skeleton` | the front-end skeleton: instructions of the same lengths; fillers, which only take slots |
//!
//! This file has the specification of a form's code, the state restored before the copies, the registers that a
//! trace stores, and the resulting program.

pub(crate) mod builder;
pub(crate) mod emitter;
pub(crate) mod forms;
pub(crate) mod loop_counter;
pub(crate) mod region;
pub(crate) mod relaid;
pub(crate) mod skeleton;

use iced_x86::{CpuidFeature, Mnemonic, Register};
use isa::code::{Block, Inst};

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

/// A register stored in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Copy, from 0.
    pub copy: usize,
    /// Instruction, from 0.
    pub instruction: usize,
    /// 64-bit general-purpose register, `ymm` or `zmm`, or mask.
    pub register: Register,
    /// Stored after the instruction, not before it.
    pub after: bool,
    /// Offset in the trace.
    pub at: usize,
}

impl Slot {
    /// Bytes that the register takes in the trace.
    pub fn size(register: Register) -> usize {
        if register.is_vector_register() { register.size() } else { 8 }
    }
}

/// Whether it is a string instruction repeated by `rcx`.
pub fn repeats(inst: &Inst) -> bool {
    let decoded = &inst.decoded;
    decoded.is_string_instruction() && (decoded.has_rep_prefix() || decoded.has_repne_prefix())
}

/// The bit offset of `bt [memory],register` and the like, which may lie outside of the operand.
pub fn bit_index(inst: &Inst) -> Option<Register> {
    let bits = matches!(
        inst.decoded.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    );
    let register = inst.decoded.op1_register();
    (bits && inst.touches_memory() && register.is_gpr()).then_some(register)
}

/// The mask that selects which elements of its memory operand an instruction accesses: faults of the others are
/// suppressed.
pub fn mask(inst: &Inst) -> Option<Register> {
    use Mnemonic as M;
    let decoded = &inst.decoded;
    if !inst.touches_memory() {
        return None;
    }
    if decoded.op_mask() != Register::None {
        return Some(decoded.op_mask());
    }
    match decoded.mnemonic() {
        M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq => {
            Some(decoded.op1_register())
        }
        M::Maskmovdqu | M::Vmaskmovdqu => Some(decoded.op2_register()),
        _ if inst.memory.iter().any(|m| m.index().is_vector_register()) => {
            Some(decoded.op2_register())
        }
        _ => None,
    }
}

/// Registers that determine what `inst` accesses: their values before it, and after it.
pub fn needed(inst: &Inst) -> (Vec<Register>, Vec<Register>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    if !inst.touches_memory() && !inst.hints() {
        return (before, after);
    }
    let evex = inst.decoded.op_code().encoding() == iced_x86::EncodingKind::EVEX;
    let mut add = |register: Register| {
        let full = match register {
            r if r.is_gpr() => r.full_register(),
            r if r.is_vector_register() && evex => Register::ZMM0 + r.number() as u32,
            r if r.is_vector_register() => Register::YMM0 + r.number() as u32,
            r if r.is_k() => r,
            _ => return,
        };
        if !before.contains(&full) {
            before.push(full);
        }
    };
    for memory in &inst.memory {
        add(memory.base());
        add(memory.index());
    }
    mask(inst).into_iter().for_each(&mut add);
    bit_index(inst).into_iter().for_each(&mut add);
    if repeats(inst) {
        add(Register::RCX);
        after.push(Register::RCX);
    }
    (before, after)
}

/// An `xchg` with memory split into a load and a store, since it locks even without a prefix.
pub(super) struct Exchange {
    /// A register that the instruction does not use.
    pub scratch: u8,
    /// `mov scratch, register`.
    pub copy: [u8; 3],
    /// `mov register, [memory]`.
    pub load: Inst,
    /// `mov [memory], scratch`.
    pub store: Inst,
}

/// Splits an `xchg` with memory; `None` for others and for bytes, which cannot cross a line.
pub(super) fn unlocked_exchange(inst: &Inst) -> Option<Exchange> {
    let decoded = &inst.decoded;
    if decoded.mnemonic() != iced_x86::Mnemonic::Xchg || !inst.touches_memory() {
        return None;
    }
    let registers = [decoded.op0_register(), decoded.op1_register()];
    let register = registers.into_iter().find(|r| r.is_gpr() && r.size() > 1)?.full_register();
    let busy = [register, decoded.memory_base(), decoded.memory_index()].map(|r| r.full_register());
    let free = [Register::RAX, Register::RCX, Register::RDX, Register::RBX];
    let scratch = free.into_iter().find(|r| !busy.contains(r))?.number() as u8;
    // Prefixes and REX come before the opcode 87 and its ModRM byte.
    let prefix = |b: &u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let mut opcode = inst.bytes.iter().take_while(|b| prefix(b)).count();
    let rex = (inst.bytes.get(opcode)? & 0xf0 == 0x40).then_some(opcode);
    opcode += usize::from(rex.is_some());
    if *inst.bytes.get(opcode)? != 0x87 {
        return None;
    }
    let (mut load, mut store) = (inst.clone(), inst.clone());
    load.bytes[opcode] = 0x8b;
    store.bytes[opcode] = 0x89;
    store.bytes[opcode + 1] = store.bytes[opcode + 1] & 0xc7 | scratch << 3;
    if let Some(rex) = rex {
        store.bytes[rex] &= !4;
    }
    let number = register.number() as u8;
    let copy = [0x48 | (number >> 3) << 2, 0x89, 0xc0 | (number & 7) << 3 | scratch];
    Some(Exchange { scratch, copy, load, store })
}

#[cfg(test)]
mod tests {
    use super::emitter::Emitter;
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use isa::code::Block;

    #[test]
    fn an_exchange_is_traced_without_its_lock() {
        // xchg [r11+8],r9 ; xchg [rbx],eax ; lock xchg [rax+rcx*4],dx
        for (hex, load, store) in [
            ("4d874b08", "mov r9,[r11+8]", "mov [r11+8],rax"),
            ("8703", "mov eax,[rbx]", "mov [rbx],ecx"),
            ("66f0871488", "mov dx,[rax+rcx*4]", "mov [rax+rcx*4],bx"),
        ] {
            let block = Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap();
            let steps = unlocked_exchange(&block.instructions[0]).unwrap();
            let text = |inst: &Inst| {
                let mut code = Emitter::at(0);
                code.instruction(inst, true, 0);
                Block::decode(&code.into_bytes()).unwrap().instructions[0].text.clone()
            };
            assert_eq!(text(&steps.load), load);
            assert_eq!(text(&steps.store), store);
            let copy = Decoder::new(64, &steps.copy, DecoderOptions::NONE).decode();
            assert_eq!(copy.op0_register().number(), usize::from(steps.scratch));
        }
    }
}
