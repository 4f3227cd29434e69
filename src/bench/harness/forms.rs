//! The code that is run: the block copied several times between a set-up and a clock.
//!
//! | form | shape |
//! |---|---|
//! | trace | copies with the registers of every address stored before each access |
//! | unrolled | repeat { restore memory and registers; fence; copies; fence } |
//! | loop | restore; repeat { copies } |
//! | checked | the copies once, with the processor's own check of alignment |

use super::builder::Builder;
use super::loop_counter::Counter;
use crate::harness::program::Program;
use crate::harness::program::Shape;
use crate::sandbox::layout::{self as at, context};

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
