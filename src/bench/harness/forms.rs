//! The forms that are run: copies of the block between set-up and time stamps.
//!
//! | form | shape |
//! |---|---|
//! | trace | copies with the registers of every address stored before each access |
//! | unrolled | repeat { restore memory and registers; fence; copies; fence } |
//! | loop | restore; repeat { copies } |
//! | closed loop | repeat { restore; the block with its own back edge, until it leaves } |
//! | region | repeat { restore; code with its own jumps, until it leaves } |
//! | back to back | restore; repeat { code with its own jumps, until it leaves } |
//! | checked | the copies once, with the processor's alignment check |
//! | replay | the unrolled form without a clock, to compare with the trace |

use super::builder::Builder;
use super::emitter::{RAX, RCX};
use super::loop_counter::LoopCounter;
use super::{Program, Shape};
use crate::harness::region::Region;
use crate::sandbox::layout as at;
use crate::sandbox::layout::context;

/// The trace: copies, each access preceded by stores of its address registers; locks without
/// their prefix; the final jump replaced by a store of its condition.
pub fn trace(shape: &Shape<'_>) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.restore();
    builder.copies(0..shape.copies, true);
    builder.code.fence();
    builder.store_registers();
    builder.finish()
}

/// The unrolled form twice, without a clock: its end state must equal that of the trace.
pub fn replay(shape: &Shape<'_>) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.warm_up(2);
    repetitions(&mut builder, shape.copies);
    builder.store_registers();
    builder.finish()
}

/// Repetitions of all copies between fences, each from the initial state. Returns where they begin.
fn repetitions(builder: &mut Builder<'_>, copies: usize) -> usize {
    let head = builder.code.here();
    fenced(builder, copies);
    builder.code.decrement(at::CONTEXT + context::LEFT);
    builder.code.jump_if_not_zero(head);
    head
}

/// All copies between fences, from the initial state.
fn fenced(builder: &mut Builder<'_>, copies: usize) {
    builder.restore();
    builder.code.fence_and_align();
    builder.copies(0..copies, false);
    builder.code.fence();
}

/// The copies once with alignment checks: RFLAGS.AC is set on the worker's stack, before registers get
/// the block's values.
pub fn checked(shape: &Shape<'_>) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.raw(&[0x68, 0x02, 0x02, 0x04, 0x00]); // push 0x40202: RFLAGS.AC, interrupts
    builder.code.raw(&[0x9d]); // popfq
    fenced(&mut builder, shape.copies);
    builder.finish()
}

/// Repetitions of the unrolled form before the timed ones.
pub const WARM: u32 = 1;

/// Executions back to back before the timed ones, and most runs to check whether they are possible.
const BACK_TO_BACK_WARM: u32 = 64;

/// Runs of the whole loop before the timed ones: predictors and caches have to learn it.
const CLOSED_WARM: u32 = 6;

/// The unrolled form, after `warm` repetitions that are not timed. Long and short runs have separate code: an indirect
/// jump into shared copies would be predicted better for one of them.
pub fn unrolled(shape: &Shape<'_>, warm: u32) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.warm_up(warm);
    let head = repetitions(&mut builder, shape.copies);
    builder.code.timed_again(head);
    builder.finish()
}

/// The copies in a loop, after `warm` iterations that are not timed. Each copy's final jump goes in its
/// most frequent direction.
pub fn looped(shape: &Shape<'_>, counter: LoopCounter, warm: u32) -> Program {
    let taken = folded(shape.taken, shape.copies);
    let shape = Shape { taken: &taken, ..shape.clone() };
    let mut builder = Builder::new(&shape);
    builder.looping = true;
    builder.prologue();
    builder.code.warm_up(warm);
    let again = builder.code.here();
    builder.restore();
    counter.start(&mut builder.code);
    builder.code.fence_and_align();
    let head = builder.code.here();
    builder.copies(0..shape.copies, false);
    counter.end(&mut builder.code, head);
    builder.code.timed_again(again);
    builder.finish()
}

/// The loop as it is: registers from `start`, then the block with its own back edge until its own exit, at
/// `align` bytes after a multiple of 64.
pub fn closed(shape: &Shape<'_>, start: &[u64; 16], align: usize, timed: bool) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.warm_up(CLOSED_WARM);
    let again = builder.code.here();
    builder.restore();
    builder.registers(start);
    builder.code.fence();
    builder.code.jump_into_line(align);
    builder.closed();
    repeated(builder, again, timed)
}

/// A region of code with its own jumps, entered at its entry, until it leaves; not entered at all
/// unless `enter`, so that the difference of both is the code's own time. `rip` says where `[rip+x]` of an
/// address points; `start` are other general-purpose registers than the initial ones, and iterations for its
/// counter.
pub fn region(
    shape: &Shape<'_>,
    region: &Region,
    rip: &dyn Fn(u64) -> usize,
    enter: bool,
    timed: bool,
    start: Option<(&[u64; 16], u64)>,
) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.warm_up(if timed { CLOSED_WARM } else { 1 });
    let again = builder.code.here();
    builder.restore();
    if let Some((registers, count)) = start {
        builder.registers(registers);
        builder.code.set32(at::CONTEXT + context::COUNT, count as u32);
    }
    builder.code.fence();
    builder.region(region, rip, enter);
    repeated(builder, again, timed)
}

/// Executions of the region back to back with these registers, without fences and on memory as the previous
/// execution left it except for `words` (address and value), so that they overlap.
pub fn back_to_back(
    shape: &Shape<'_>,
    region: &Region,
    rip: &dyn Fn(u64) -> usize,
    registers: &[u64; 16],
    words: &[(u64, u64)],
    timed: bool,
) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.warm_up(BACK_TO_BACK_WARM);
    let again = builder.code.here();
    builder.restore();
    builder.code.fence();
    let next = builder.code.here();
    for (address, value) in words {
        builder.code.constant(RAX, *address);
        builder.code.constant(RCX, *value);
        builder.code.raw(&[0x48, 0x89, 0x08]); // mov [rax], rcx
    }
    builder.registers(registers);
    builder.region(region, rip, true);
    builder.code.decrement(at::CONTEXT + context::LEFT);
    builder.code.jump_if_not_zero(next);
    builder.code.fence();
    match timed {
        true => builder.code.timed_again(again),
        false => builder.store_registers(),
    }
    builder.finish()
}

/// After code that leaves a loop by its own exit: repeats it from `again`, with the clock if `timed`, else storing the
/// registers at its end.
fn repeated(mut builder: Builder<'_>, again: usize, timed: bool) -> Program {
    builder.code.fence();
    builder.code.decrement(at::CONTEXT + context::LEFT);
    builder.code.jump_if_not_zero(again);
    if timed {
        builder.code.timed_again(again);
    } else {
        builder.store_registers();
    }
    builder.finish()
}

/// Copies of a loop body chained by their own back edges, each of which goes to the next copy; after
/// the last one `counter` decides. `inverted` back edges have the opposite condition. A copy that would
/// leave traps.
pub fn chained(
    shape: &Shape<'_>,
    counter: LoopCounter,
    warm: u32,
    align: usize,
    inverted: bool,
) -> Program {
    let mut builder = Builder::new(shape);
    builder.prologue();
    builder.code.warm_up(warm);
    let again = builder.code.here();
    builder.restore();
    counter.start(&mut builder.code);
    builder.code.fence();
    builder.code.jump_into_line(align);
    let head = builder.code.here();
    builder.chain(align, inverted);
    counter.end(&mut builder.code, head);
    builder.code.timed_again(again);
    builder.finish()
}

/// For each copy of a loop, whether its jump is taken in most of its iterations.
fn folded(taken: &[bool], copies: usize) -> Vec<bool> {
    let often = |copy: usize| {
        // As in the trace's last copy, where there are more.
        let copy = copy.min(taken.len().saturating_sub(1));
        let own = taken.iter().skip(copy).step_by(copies.max(1));
        let (all, yes) = own.fold((0, 0), |(all, yes), t| (all + 1, yes + usize::from(*t)));
        2 * yes > all
    };
    (0..copies).map(often).collect()
}
