//! The code that is run: the block copied several times between a set-up and a clock.
//!
//! | form | shape |
//! |---|---|
//! | trace | copies with the registers of every address stored before each access |
//! | unrolled | repeat { restore memory and registers; fence; copies; fence } |
//! | loop | restore; repeat { copies } |

use super::counter::Counter;
use super::emit::{Emitter, R8, RCX, RDX, condition};
use super::sandbox::layout::{self as at, context};
use super::sandbox::return_offset;
use super::trace::{self, Slot};
use crate::code::{Block, Inst};
use iced_x86::Register;

/// What the set-up must restore for a block.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    vectors: Option<Width>,
    vector_inputs: Vec<u8>,
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

impl Needs {
    /// Reads it off the block's instructions.
    pub fn of(block: &Block) -> Self {
        let texts = |word: &str| block.instructions.iter().any(|i| i.text.starts_with(word));
        let vector = block.uses(Register::is_vector_register);
        let evex = block
            .instructions
            .iter()
            .any(|i| i.decoded.op_code().encoding() == iced_x86::EncodingKind::EVEX);
        let vex = block.instructions.iter().any(|i| {
            i.decoded.op_code().encoding() != iced_x86::EncodingKind::Legacy
                && i.registers.iter().any(|r| r.register().is_vector_register())
        });
        let x87 = block.uses(Register::is_st) || texts("f");
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
            direction: texts("std"),
            mxcsr: texts("ldmxcsr") || texts("vldmxcsr"),
        }
    }
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

/// How to build a form.
#[derive(Debug, Clone)]
pub struct Shape<'a> {
    /// The block.
    pub block: &'a Block,
    /// What to restore.
    pub needs: &'a Needs,
    /// How many copies.
    pub copies: usize,
    /// Whether memory lines must be restored.
    pub lines: bool,
    /// Registers (encoding numbers) set again before every copy but the first.
    pub reseeded: &'a [u8],
    /// For each copy, whether the final conditional jump is taken there.
    pub taken: &'a [bool],
    /// Offset of the code in the region.
    pub start: usize,
    /// Where `[rip+x]` points, from the start of the region.
    pub rip_area: usize,
}

/// Code ready to be written to the region.
#[derive(Debug, Clone)]
pub struct Program {
    /// Where its bytes go.
    pub start: usize,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Offset, copy and instruction of everything that came from the block.
    pub origins: Vec<(usize, usize, usize)>,
    /// What a trace stores, in the order of the code.
    pub slots: Vec<Slot>,
    /// Bytes that they take.
    pub traced: usize,
    /// Where a trace stores whether the final jump is taken, one byte a copy.
    pub conditions: usize,
}

impl Program {
    /// The copy and instruction at an offset in the region.
    pub fn origin(&self, offset: usize) -> Option<(usize, usize)> {
        let next = self.origins.partition_point(|(at, ..)| *at <= offset);
        let (_, copy, inst) = self.origins.get(next.checked_sub(1)?)?;
        Some((*copy, *inst))
    }

    /// First byte behind it.
    pub fn end(&self) -> usize {
        self.start + self.bytes.len()
    }
}

struct Builder<'a> {
    shape: &'a Shape<'a>,
    code: Emitter,
    origins: Vec<(usize, usize, usize)>,
    slots: Vec<Slot>,
    /// Bytes of the trace in use.
    traced: usize,
    /// Whether another copy runs before the first.
    looping: bool,
}

/// The trace: copies, each access preceded by stores of its address registers; locks without
/// their prefix; the final jump replaced by a store of its condition.
pub fn trace(shape: &Shape<'_>) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.restore();
    for copy in 0..shape.copies {
        builder.copies(copy..copy + 1, true);
    }
    builder.code.fence();
    builder.keep_registers();
    builder.finish()
}

/// As the unrolled form runs, twice and without a clock: what is left behind must be what the trace
/// left behind.
pub fn replay(shape: &Shape<'_>) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.warm_up(2);
    let head = builder.code.here();
    builder.restore();
    builder.code.fence();
    builder.copies(0..shape.copies, false);
    builder.code.fence();
    builder.code.decrement(at::CONTEXT + context::LEFT);
    builder.code.jump_if_not_zero(head);
    builder.keep_registers();
    builder.finish()
}

/// Repetitions of the unrolled form before the timed ones.
pub const WARM: u32 = 1;

/// The unrolled form. Long and short runs are code of their own: an indirect jump into common
/// copies would be predicted for one of them more often than for the other.
pub fn unrolled(shape: &Shape<'_>) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.warm_up(WARM);
    let head = builder.code.here();
    builder.restore();
    builder.code.fence();
    builder.copies(0..shape.copies, false);
    builder.code.fence();
    builder.code.decrement(at::CONTEXT + context::LEFT);
    builder.code.jump_if_not_zero(head);
    builder.code.timed_again(head);
    builder.finish()
}

/// The copies in a loop; `warm` iterations before the timed ones. Each copy's final jump goes the
/// way that it mostly goes at that place.
pub fn looped(shape: &Shape<'_>, counter: Counter, warm: u32) -> Program {
    let taken = folded(shape.taken, shape.copies);
    let shape = Shape { taken: &taken, ..shape.clone() };
    let mut builder = Builder::new(&shape);
    builder.looping = true;
    builder.prologue();
    builder.code.warm_up(warm);
    let again = builder.code.here();
    builder.restore();
    counter.start(&mut builder.code);
    builder.code.fence();
    let head = builder.code.here();
    builder.copies(0..shape.copies, false);
    counter.end(&mut builder.code, head);
    builder.code.timed_again(again);
    builder.finish()
}

/// For each copy of a loop, whether its jump is taken in most of its iterations.
fn folded(taken: &[bool], copies: usize) -> Vec<bool> {
    let often = |copy: usize| {
        let own = taken.iter().skip(copy).step_by(copies.max(1));
        let (all, yes) = own.fold((0, 0), |(all, yes), t| (all + 1, yes + usize::from(*t)));
        2 * yes > all
    };
    (0..copies).map(often).collect()
}

impl<'a> Builder<'a> {
    fn new(shape: &'a Shape<'a>) -> Self {
        let code = Emitter::at(shape.start);
        Self { shape, code, origins: Vec::new(), slots: Vec::new(), traced: 0, looping: false }
    }

    /// Dither, and state that is set once.
    fn prologue(&mut self) {
        let code = &mut self.code;
        code.dither();
        code.load_mxcsr(at::CONTEXT + context::MXCSR);
        match self.shape.needs.vectors {
            None => {}
            Some(Width::Xmm) => {
                // Dirty upper halves would slow legacy SSE down on some processors.
                if std::arch::is_x86_feature_detected!("avx") {
                    code.raw(&[0xc5, 0xf8, 0x77]); // vzeroupper
                }
                (0..16).for_each(|r| code.load_xmm(r, at::CONTEXT + context::VECTOR));
            }
            Some(Width::Ymm) => {
                (0..16).for_each(|r| code.load_ymm(r, at::CONTEXT + context::VECTOR))
            }
            Some(Width::Zmm) => {
                (0..32).for_each(|r| code.load_zmm(r, at::CONTEXT + context::VECTOR))
            }
        }
    }

    /// Memory lines, then vector, x87 and mask state, flags, and the general-purpose registers.
    fn restore(&mut self) {
        let (code, needs) = (&mut self.code, self.shape.needs);
        if self.shape.lines {
            restore_lines(code);
        }
        for register in &needs.vector_inputs {
            match needs.vectors {
                Some(Width::Zmm) => code.load_zmm(*register, at::CONTEXT + context::VECTOR),
                Some(Width::Ymm) => code.load_ymm(*register, at::CONTEXT + context::VECTOR),
                _ => code.load_xmm(*register, at::CONTEXT + context::VECTOR),
            }
        }
        if needs.x87 {
            code.raw(&[0xdb, 0xe3]); // fninit
            (0..4).for_each(|_| code.raw(&[0xd9, 0xe8])); // fld1
        }
        for register in &needs.mmx_inputs {
            code.load_mm(*register, at::CONTEXT + context::VECTOR);
        }
        if needs.masks {
            (1..8).for_each(|k| code.set_mask(k));
        }
        if needs.direction {
            code.raw(&[0xfc]); // cld
        }
        if needs.mxcsr {
            code.load_mxcsr(at::CONTEXT + context::MXCSR);
        }
        code.raw(&[0x31, 0xc0]); // xor eax, eax: the flags every run starts with
        (0..16).for_each(|r| load_initial(code, r));
    }

    fn copies(&mut self, copies: std::ops::Range<usize>, traced: bool) {
        for copy in copies {
            if copy > 0 || self.looping {
                self.shape.reseeded.iter().for_each(|r| load_initial(&mut self.code, *r));
            }
            for (i, inst) in self.shape.block.instructions.iter().enumerate() {
                let (before, behind) =
                    if traced { trace::needed(inst) } else { (Vec::new(), Vec::new()) };
                self.store(copy, i, &before, false);
                self.origins.push((self.code.here(), copy, i));
                self.one(copy, inst, traced);
                self.store(copy, i, &behind, true);
            }
        }
    }

    fn one(&mut self, copy: usize, inst: &Inst, traced: bool) {
        let decoded = &inst.decoded;
        let conditional = decoded.is_jcc_short_or_near();
        if conditional || decoded.is_jmp_short_or_near() {
            match condition(inst) {
                Some(condition) if traced => {
                    self.code.set_condition(condition, self.conditions() + copy);
                }
                _ => {
                    let taken = self.shape.taken.get(copy).copied().unwrap_or(false);
                    self.code.final_jump(inst, taken);
                }
            }
        } else if traced && let Some(steps) = unlocked_exchange(inst) {
            let kept = self.conditions() - 8;
            self.code.store(steps.scratch, kept);
            self.code.raw(&steps.copy);
            self.code.instruction(&steps.load, true, self.shape.rip_area);
            self.code.instruction(&steps.store, true, self.shape.rip_area);
            self.code.load(steps.scratch, kept);
        } else {
            self.code.instruction(inst, traced, self.shape.rip_area);
        }
    }

    fn conditions(&self) -> usize {
        at::TRACE + at::TRACE_SIZE - 4096
    }

    /// Stores registers of an address in the trace, as far as there is room.
    fn store(&mut self, copy: usize, instruction: usize, registers: &[Register], behind: bool) {
        for &register in registers {
            let at = self.traced;
            let target = at::TRACE + at;
            self.traced += Slot::size(register);
            if at::TRACE + self.traced > self.conditions() - 8 {
                self.traced = at;
                return;
            }
            let number = register.number() as u8;
            match register {
                r if r.is_k() => self.code.store_mask(number, target),
                r if r.is_zmm() => self.code.store_zmm(number, target),
                r if r.is_ymm() => self.code.store_ymm(number, target),
                _ => self.code.store(number, target),
            }
            self.slots.push(Slot { copy, instruction, register, behind, at });
        }
    }

    /// The registers at the end tell whether two runs did the same.
    fn keep_registers(&mut self) {
        for register in 0..16 {
            let place = context::END_REGISTERS + 8 * usize::from(register);
            self.code.store(register, at::CONTEXT + place);
        }
    }

    fn finish(mut self) -> Program {
        self.code.jump(return_offset());
        Program {
            start: self.shape.start,
            conditions: self.conditions(),
            bytes: self.code.into_bytes(),
            origins: self.origins,
            slots: self.slots,
            traced: self.traced,
        }
    }
}

/// An `xchg` with memory taken apart, since it locks even without a prefix.
struct Exchange {
    scratch: u8,
    /// `mov scratch, register`.
    copy: [u8; 3],
    /// `mov register, [memory]`.
    load: Inst,
    /// `mov [memory], scratch`.
    store: Inst,
}

/// `None` if it is no `xchg` with memory of more than a byte, which alone could cross a line.
fn unlocked_exchange(inst: &Inst) -> Option<Exchange> {
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

/// Sets a register to its initial value.
fn load_initial(code: &mut Emitter, register: u8) {
    code.load(register, at::CONTEXT + context::REGISTERS + 8 * usize::from(register));
}

/// Fills the lines that the block writes with the pattern again, through the block's own
/// addresses, and lets the stores drain.
fn restore_lines(code: &mut Emitter) {
    code.load32(RCX, at::CONTEXT + context::LINE_COUNT);
    code.address(R8, at::LINES);
    code.load(RDX, at::CONTEXT + context::PATTERN);
    let head = code.here();
    code.raw(&[0x49, 0x8b, 0x00]); // mov rax, [r8]
    for word in 0..8u8 {
        code.raw(&[0x48, 0x89, 0x50, 8 * word]); // mov [rax + 8·word], rdx
    }
    code.raw(&[0x49, 0x83, 0xc0, 0x08]); // add r8, 8
    code.decrement_register(RCX);
    code.jump_if_not_zero(head);
    code.raw(&[0x0f, 0xae, 0xf0]); // mfence
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn an_exchange_is_traced_without_its_lock() {
        // xchg [r11+8],r9 ; xchg [rbx],eax ; lock xchg [rax+rcx*4],dx
        for (hex, load, store) in [
            ("4d874b08", "mov r9,[r11+8]", "mov [r11+8],rax"),
            ("8703", "mov eax,[rbx]", "mov [rbx],ecx"),
            ("66f0871488", "mov dx,[rax+rcx*4]", "mov [rax+rcx*4],bx"),
        ] {
            let block = Block::decode(&crate::code::parse_hex(hex).unwrap()).unwrap();
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
