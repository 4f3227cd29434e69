//! The code that is run: the block copied several times between a set-up and a clock.
//!
//! | form | shape |
//! |---|---|
//! | trace | copies with the registers of every address stored before each access |
//! | unrolled | repeat { restore memory and registers; fence; copies; fence } |
//! | loop | restore; repeat { copies } |
//! | checked | the copies once, with the processor's own check of alignment |

use super::builder::Builder;
use super::counter::Counter;
pub use super::needs::Needs;
use crate::initial::trace::Slot;
use crate::sandbox::layout::{self as at, context};
use isa::code::Block;

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

/// The trace: copies, each access preceded by stores of its address registers; locks without
/// their prefix; the final jump replaced by a store of its condition.
pub fn trace(shape: &Shape<'_>) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.restore();
    builder.copies(0..shape.copies, true);
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

/// The copies once, the processor checking the alignment of every access: the flags are set on the
/// worker's own stack, before registers have the block's values, none of which changes them.
pub fn checked(shape: &Shape<'_>) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.raw(&[0x68, 0x02, 0x02, 0x04, 0x00]); // push 0x40202: RFLAGS.AC, interrupts
    builder.code.raw(&[0x9d]); // popfq
    builder.restore();
    builder.code.fence();
    builder.copies(0..shape.copies, false);
    builder.code.fence();
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
