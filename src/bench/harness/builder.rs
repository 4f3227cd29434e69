//! Builds the parts of a form: set-up, restoring of state, copies, trace stores.

use super::emitter::{Emitter, R8, RCX, condition};
use super::{Program, Shape, Slot, Width, needed, unlocked_exchange};
use crate::harness::region::Region;
use crate::sandbox::layout::context;
use crate::sandbox::{layout as at, return_offset};
use iced_x86::Register;
use isa::code::Inst;

/// Bytes of a jump.
const JUMP: usize = 5;

/// Code under construction.
pub(super) struct Builder<'a> {
    shape: &'a Shape<'a>,
    pub(super) code: Emitter,
    origins: Vec<(usize, usize, usize)>,
    slots: Vec<Slot>,
    /// Bytes of the trace in use.
    traced: usize,
    /// Whether another copy runs before the first.
    pub(super) looping: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(shape: &'a Shape<'a>) -> Self {
        // Copies of a trace are longer; the buffer grows then.
        let code = Emitter::with_room(shape.start, shape.block.bytes.len() * shape.copies + 1024);
        Self { shape, code, origins: Vec::new(), slots: Vec::new(), traced: 0, looping: false }
    }

    /// Dither, and state that is initialised once.
    pub(super) fn prologue(&mut self) {
        let code = &mut self.code;
        code.dither();
        code.load_mxcsr(at::CONTEXT + context::MXCSR);
        match self.shape.required_state.vectors {
            None => {}
            Some(Width::Xmm) => {
                code.clean_upper_halves();
                (0..16).for_each(|r| code.load_xmm(r, vector(r)));
            }
            Some(Width::Ymm) => (0..16).for_each(|r| code.load_ymm(r, vector(r))),
            Some(Width::Zmm) => (0..32).for_each(|r| code.load_zmm(r, vector(r))),
        }
    }

    /// Memory lines, then vector, x87 and mask state, flags, and the general-purpose registers.
    pub(super) fn restore(&mut self) {
        let (code, required_state) = (&mut self.code, self.shape.required_state);
        if self.shape.lines {
            restore_lines(code);
        }
        for register in &required_state.vector_inputs {
            match required_state.vectors {
                Some(Width::Zmm) => code.load_zmm(*register, vector(*register)),
                Some(Width::Ymm) => code.load_ymm(*register, vector(*register)),
                _ => code.load_xmm(*register, vector(*register)),
            }
        }
        if required_state.x87 {
            code.raw(&[0xdb, 0xe3]); // fninit
            (0..4).for_each(|_| code.raw(&[0xd9, 0xe8])); // fld1
        }
        for register in &required_state.mmx_inputs {
            code.load_mm(*register, at::CONTEXT + context::VECTOR);
        }
        if required_state.masks {
            (1..8).for_each(|k| code.set_mask(k));
        }
        if required_state.direction {
            code.raw(&[0xfc]); // cld
        }
        if required_state.mxcsr {
            code.load_mxcsr(at::CONTEXT + context::MXCSR);
        }
        code.raw(&[0x31, 0xc0]); // xor eax, eax: the flags every run starts with
        (0..16).for_each(|r| load_initial(code, r));
    }

    pub(super) fn copies(&mut self, copies: std::ops::Range<usize>, traced: bool) {
        let instructions = &self.shape.block.instructions;
        let needed: Vec<_> = instructions
            .iter()
            .map(|i| if traced { needed(i) } else { Default::default() })
            .collect();
        self.origins.reserve(copies.len() * instructions.len());
        let first = copies.start;
        for copy in copies {
            if copy > first && !traced && self.repeats_last(copy) {
                continue;
            }
            if copy > 0 || self.looping {
                self.shape.reseeded.iter().for_each(|r| load_initial(&mut self.code, *r));
            }
            for (i, (inst, (before, after))) in instructions.iter().zip(&needed).enumerate() {
                self.store(copy, i, before, false);
                self.origins.push((self.code.here(), copy, i));
                self.one(copy, inst, traced);
                self.store(copy, i, after, true);
            }
        }
    }

    /// Adds `copy` as the bytes of the one before, if it is the same code at any address.
    fn repeats_last(&mut self, copy: usize) -> bool {
        let (shape, taken) = (self.shape, |copy: usize| self.shape.taken.get(copy));
        let instructions = &shape.block.instructions;
        let moves = |inst: &Inst| inst.rip_displacement.is_some();
        if !shape.reseeded.is_empty()
            || taken(copy) != taken(copy - 1)
            || instructions.iter().any(moves)
        {
            return false;
        }
        let last = self.origins.len() - instructions.len();
        let length = self.code.here() - self.origins[last].0;
        self.code.repeat(length);
        for origin in last..last + instructions.len() {
            let (at, _, instruction) = self.origins[origin];
            self.origins.push((at + length, copy, instruction));
        }
        true
    }

    /// The block once, its back edge to its own start.
    pub(super) fn closed(&mut self) {
        for (i, inst) in self.shape.block.instructions.iter().enumerate() {
            self.origins.push((self.code.here(), 0, i));
            self.code.instruction(inst, false, self.shape.rip_area);
        }
    }

    /// Whole code that leaves to `out` when it is done.
    pub(super) fn region(&mut self, region: &Region, rip: &dyn Fn(u64) -> usize, enter: bool) {
        let jump = self.code.here();
        let start = region.place_after(jump + JUMP);
        let (bytes, out) = region.placed(start, rip);
        self.code.jump(if enter { start + region.entry } else { out });
        self.code.trap_until(start);
        self.code.raw(&bytes);
    }

    /// All copies, each one's final jump to the next, at the same place within a cache line.
    pub(super) fn chain(&mut self, align: usize, inverted: bool) {
        let instructions = &self.shape.block.instructions;
        for copy in 0..self.shape.copies {
            for (i, inst) in instructions.iter().enumerate() {
                self.origins.push((self.code.here(), copy, i));
                match i + 1 < instructions.len() {
                    true => self.code.instruction(inst, false, self.shape.rip_area),
                    false if !inst.decoded.is_jcc_short_or_near() => {
                        self.code.instruction(inst, false, self.shape.rip_area);
                    }
                    false if copy + 1 < self.shape.copies => {
                        self.code.back_edge(inst, inverted, align);
                    }
                    // Taken, too, to the counter.
                    false => self.code.final_jump(inst, inverted),
                }
            }
        }
    }

    /// Sets general-purpose registers.
    pub(super) fn registers(&mut self, values: &[u64; 16]) {
        (0..16).for_each(|r| self.code.constant(r, values[usize::from(r)]));
    }

    pub(super) fn one(&mut self, copy: usize, inst: &Inst, traced: bool) {
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
            let spill = self.conditions() - 8;
            self.code.store(steps.scratch, spill);
            self.code.raw(&steps.copy);
            self.code.instruction(&steps.load, true, self.shape.rip_area);
            self.code.instruction(&steps.store, true, self.shape.rip_area);
            self.code.load(steps.scratch, spill);
        } else {
            self.code.instruction(inst, traced, self.shape.rip_area);
        }
    }

    pub(super) fn conditions(&self) -> usize {
        at::TRACE + at::TRACE_SIZE - 4096
    }

    /// Stores address registers in the trace, as far as there is room.
    pub(super) fn store(
        &mut self,
        copy: usize,
        instruction: usize,
        registers: &[Register],
        after: bool,
    ) {
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
            self.slots.push(Slot { copy, instruction, register, after, at });
        }
    }

    /// Stores the registers at the end, to compare runs.
    pub(super) fn store_registers(&mut self) {
        for register in 0..16 {
            let place = context::END_REGISTERS + 8 * usize::from(register);
            self.code.store(register, at::CONTEXT + place);
        }
    }

    pub(super) fn finish(mut self) -> Program {
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

/// Offset of the initial value of a vector register.
fn vector(register: u8) -> usize {
    at::VECTORS + 64 * usize::from(register)
}

/// Sets a register to its initial value.
fn load_initial(code: &mut Emitter, register: u8) {
    code.load(register, at::CONTEXT + context::REGISTERS + 8 * usize::from(register));
}

/// Gives the lines that the block writes their initial content, through the block's addresses, and
/// drains the store buffer.
fn restore_lines(code: &mut Emitter) {
    code.load32(RCX, at::CONTEXT + context::LINE_COUNT);
    code.address(R8, at::LINES);
    let head = code.here();
    code.raw(&[0x49, 0x8b, 0x00]); // mov rax, [r8]
    code.raw(&[0x4d, 0x8b, 0x48, 0x08]); // mov r9, [r8 + 8]
    for word in 0..8u8 {
        code.raw(&[0x49, 0x8b, 0x51, 8 * word]); // mov rdx, [r9 + 8·word]
        code.raw(&[0x48, 0x89, 0x50, 8 * word]); // mov [rax + 8·word], rdx
    }
    code.raw(&[0x49, 0x83, 0xc0, 0x10]); // add r8, 16
    code.decrement_register(RCX);
    code.jump_if_not_zero(head);
    code.raw(&[0x0f, 0xae, 0xf0]); // mfence
}
