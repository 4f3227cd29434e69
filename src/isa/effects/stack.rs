//! Distinguishes the registers of the x87 stack over a region: `st(i)` counts from the top, which pushes and pops
//! move.

use super::arch_reg::ArchReg;
use super::model::Effects;
use iced_x86::Instruction;

/// Numbers the stack registers of a region from the top of the stack at its start: `st2` is the one that
/// its first instruction calls `st(2)`.
///
/// Where an iteration does not leave the top where it was, or an instruction touches the whole stack, they
/// stay one register ([`ArchReg::X87`]), and dependencies through it may not exist.
pub(crate) fn resolve(instructions: &[Instruction], effects: &mut [Effects]) {
    let touches = |e: &Effects| e.read().or(e.written()).iter().any(ArchReg::is_stack);
    if !effects.iter().any(touches) {
        return;
    }
    let moves: Vec<_> = instructions.iter().map(Instruction::fpu_stack_increment_info).collect();
    let whole = effects.iter().any(|e| e.read().or(e.written()).has(ArchReg::X87));
    let net: i32 = moves.iter().map(|m| m.increment()).sum();
    if whole || net % 8 != 0 || moves.iter().any(|m| m.conditional()) {
        effects.iter_mut().filter(|e| touches(e)).for_each(fold);
        return;
    }
    let mut top = 0;
    for (own, moved) in effects.iter_mut().zip(&moves) {
        renumber(own, |number| ArchReg::stack((i32::from(number) + top).rem_euclid(8) as u8));
        top += moved.increment();
    }
}

fn renumber(effects: &mut Effects, name: impl Fn(u8) -> ArchReg) {
    let reads = effects.reads.iter_mut().map(|read| &mut read.reg);
    for reg in reads.chain(effects.writes.iter_mut().map(|write| &mut write.reg)) {
        if let Some(number) = reg.as_stack() {
            *reg = name(number);
        }
    }
}

/// Makes all stack registers one.
fn fold(effects: &mut Effects) {
    renumber(effects, |_| ArchReg::X87);
    effects.unmodelled.get_or_insert(
        "the x87 stack does not return to where it was: its registers count as one, and bounds leave it out",
    );
}
