//! Groups of flags read and written.

use super::model::{Effects, Read, Role, Write};
use super::place::Place;
use iced_x86::{Instruction, Mnemonic, OpKind, Register, RflagsBits};
use tma::tables::Facts;
use tma::tables::facts::FalseDependence;

const SIGN_ZERO: u32 = RflagsBits::SF | RflagsBits::ZF | RflagsBits::PF | RflagsBits::AF;

/// Adds what `instruction` does to flags.
///
/// A group that is written in part is kept in part (`cmpxchg8b` sets ZF alone). One of which only
/// undefined flags are touched while others of it stay (`bt` and SF, PF, AF beside ZF) counts as
/// not written.
pub(super) fn add(effects: &mut Effects, instruction: &Instruction, core: &Facts) {
    for place in Place::flags(instruction.rflags_read()) {
        effects.reads.push(Read { place, role: Role::Data });
    }
    let defined =
        instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set();
    let modified = instruction.rflags_modified();
    let keeps_for_zero = shifts_by_cl(instruction);
    for place in Place::flags(modified) {
        let partial = place == Place::SIGN_ZERO && modified & SIGN_ZERO != SIGN_ZERO;
        if partial && defined & SIGN_ZERO == 0 {
            continue;
        }
        effects.writes.push(Write { place, whole: !partial && !keeps_for_zero });
        let waits = partial || (keeps_for_zero && core.waits(FalseDependence::ShiftFlags));
        if waits && !effects.reads.iter().any(|r| r.place == place) {
            effects.reads.push(Read { place, role: Role::Kept });
        }
    }
}

/// Whether it shifts or rotates by `cl`: a count of zero leaves the flags as they are.
pub(super) fn shifts_by_cl(instruction: &Instruction) -> bool {
    use Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
    let count = match instruction.mnemonic() {
        Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shr => 1,
        Shld | Shrd => 2,
        _ => return false,
    };
    instruction.op_kind(count) == OpKind::Register && instruction.op_register(count) == Register::CL
}
