//! The x87 register stack: registers that an instruction reads and writes, counted from the top of the stack before it.
//! `st(i)` counts from the top, which pushes and pops move, so a region tells them apart.

use super::model::{ArchReg, Effects, Paths, Read, Role, Write};
use iced_x86::{Instruction, Mnemonic, Register};

/// Register that a push writes: the one above the top.
const PUSHED: u8 = 7;

/// Replaces the stack registers that iced-x86 reports by those of the table below. Instructions that are
/// not in it read and write the whole stack as [`ArchReg::X87`].
pub(super) fn apply(effects: &mut Effects, instruction: &Instruction) {
    const STATUS: u32 = iced_x86::RflagsBits::C0
        | iced_x86::RflagsBits::C1
        | iced_x86::RflagsBits::C2
        | iced_x86::RflagsBits::C3;
    let moves = instruction.fpu_stack_increment_info().writes_top();
    let status = (instruction.rflags_read() | instruction.rflags_modified()) & STATUS != 0;
    let touches = effects.read().or(effects.written()).iter().any(ArchReg::is_x87);
    if !(moves || status || touches) {
        return;
    }
    effects.reads.retain(|r| !r.reg.is_x87());
    effects.writes.retain(|w| !w.reg.is_x87());
    let Some((reads, writes)) = table(instruction) else {
        effects.reads.push(Read { reg: ArchReg::X87, role: Role::Data });
        effects.writes.push(Write { reg: ArchReg::X87, whole: false });
        effects.unmodelled = Some("reads or writes the whole x87 stack");
        return;
    };
    let of = |number: &u8| ArchReg::x87(*number);
    effects.reads.extend(reads.iter().map(|r| Read { reg: of(r), role: Role::Data }));
    effects.writes.extend(writes.iter().map(|w| Write { reg: of(w), whole: true }));
    if instruction.mnemonic() == Mnemonic::Fxch {
        effects.paths = Paths::Exchange;
    }
    status_word(effects, instruction);
}

/// Comparisons that leave their result in the status word, and its readers.
fn status_word(effects: &mut Effects, instruction: &Instruction) {
    use Mnemonic as M;
    let reg = ArchReg::X87_CONTROL;
    match instruction.mnemonic() {
        M::Fcom
        | M::Fcomp
        | M::Fcompp
        | M::Fucom
        | M::Fucomp
        | M::Fucompp
        | M::Ficom
        | M::Ficomp
        | M::Ftst
        | M::Fxam => effects.writes.push(Write { reg, whole: true }),
        M::Fnstsw | M::Fstsw => effects.reads.push(Read { reg, role: Role::Data }),
        _ => {}
    }
}

/// Stack registers read and written (Intel SDM vol. 2); `None` for what is not listed.
fn table(instruction: &Instruction) -> Option<(Vec<u8>, Vec<u8>)> {
    use Mnemonic as M;
    let named: Vec<u8> = (0..instruction.op_count())
        .map(|at| instruction.op_register(at))
        .filter(|register| register.is_st())
        .map(|register| (register as u32 - Register::ST0 as u32) as u8)
        .collect();
    let first = named.first().copied();
    Some(match instruction.mnemonic() {
        M::Fld
        | M::Fild
        | M::Fbld
        | M::Fld1
        | M::Fldl2t
        | M::Fldl2e
        | M::Fldpi
        | M::Fldlg2
        | M::Fldln2
        | M::Fldz => (last(&named), vec![PUSHED]),
        M::Fst | M::Fstp | M::Fist | M::Fistp | M::Fisttp | M::Fbstp => (vec![0], last(&named)),
        M::Fxch => (named.clone(), named),
        M::Fadd
        | M::Faddp
        | M::Fsub
        | M::Fsubp
        | M::Fsubr
        | M::Fsubrp
        | M::Fmul
        | M::Fmulp
        | M::Fdiv
        | M::Fdivp
        | M::Fdivr
        | M::Fdivrp => match first {
            Some(to) => (named, vec![to]),
            None => (vec![0], vec![0]),
        },
        M::Fiadd
        | M::Fisub
        | M::Fisubr
        | M::Fimul
        | M::Fidiv
        | M::Fidivr
        | M::Fchs
        | M::Fabs
        | M::Fsqrt
        | M::Frndint
        | M::F2xm1
        | M::Fsin
        | M::Fcos => (vec![0], vec![0]),
        M::Fsincos | M::Fptan => (vec![0], vec![0, PUSHED]),
        M::Fcmovb
        | M::Fcmove
        | M::Fcmovbe
        | M::Fcmovu
        | M::Fcmovnb
        | M::Fcmovne
        | M::Fcmovnbe
        | M::Fcmovnu => (named, vec![0]),
        M::Fyl2x | M::Fyl2xp1 | M::Fpatan => (vec![0, 1], vec![1]),
        M::Fprem | M::Fprem1 | M::Fscale => (vec![0, 1], vec![0]),
        M::Fcomi | M::Fcomip | M::Fucomi | M::Fucomip => (named, Vec::new()),
        M::Fcompp | M::Fucompp => (vec![0, 1], Vec::new()),
        M::Fcom | M::Fcomp | M::Fucom | M::Fucomp | M::Ficom | M::Ficomp | M::Ftst | M::Fxam => {
            (if named.is_empty() { vec![0] } else { named }, Vec::new())
        }
        M::Fdecstp | M::Fincstp | M::Ffree | M::Fnop | M::Fnstsw | M::Fstsw => {
            (Vec::new(), Vec::new())
        }
        _ => return None,
    })
}

/// The last of the named registers, if there is one.
fn last(named: &[u8]) -> Vec<u8> {
    named.last().copied().into_iter().collect()
}

/// Numbers the stack registers of a region from the top of the stack at its start: `st2` is the one that
/// its first instruction calls `st(2)`.
///
/// Where an iteration does not leave the top where it was, or an instruction touches the whole stack, they
/// stay one register ([`ArchReg::X87`]), and dependencies through it may not exist.
pub(crate) fn resolve(instructions: &[Instruction], effects: &mut [Effects]) {
    let touches = |e: &Effects| e.read().or(e.written()).iter().any(ArchReg::is_x87);
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
        renumber(own, |number| ArchReg::x87((i32::from(number) + top).rem_euclid(8) as u8));
        top += moved.increment();
    }
}

fn renumber(effects: &mut Effects, name: impl Fn(u8) -> ArchReg) {
    let reads = effects.reads.iter_mut().map(|read| &mut read.reg);
    for reg in reads.chain(effects.writes.iter_mut().map(|write| &mut write.reg)) {
        if let Some(number) = reg.as_x87() {
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
