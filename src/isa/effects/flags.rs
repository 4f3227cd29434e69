//! Flag groups read and written.

use super::arch_reg::ArchReg;
use super::model::{Effects, Read, Role, Write};
use iced_x86::{Instruction, Mnemonic, OpKind, Register, RflagsBits};
use tma::tables::Facts;
use tma::tables::facts::FalseDependence;

const SIGN_ZERO: u32 = RflagsBits::SF | RflagsBits::ZF | RflagsBits::PF | RflagsBits::AF;

/// Adds the flag groups that `instruction` reads and writes.
///
/// A partial write merges the rest of the group (`cmpxchg8b` sets only ZF). A group counts as not
/// written if the instruction only leaves some of its flags undefined and the others unchanged (`bt`
/// leaves SF, PF and AF undefined and ZF unchanged).
pub(super) fn add(effects: &mut Effects, instruction: &Instruction, core: &Facts) {
    for reg in ArchReg::flags(instruction.rflags_read()) {
        effects.reads.push(Read { reg, role: Role::Data });
    }
    let defined =
        instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set();
    let modified = instruction.rflags_modified();
    let keeps_for_zero_count = shifts_by_cl(instruction);
    for reg in ArchReg::flags(modified) {
        let partial = reg == ArchReg::SIGN_ZERO && modified & SIGN_ZERO != SIGN_ZERO;
        if partial && defined & SIGN_ZERO == 0 {
            continue;
        }
        effects.writes.push(Write { reg, whole: !partial && !keeps_for_zero_count });
        let waits = partial || (keeps_for_zero_count && core.waits(FalseDependence::ShiftFlags));
        if waits && !effects.reads.iter().any(|r| r.reg == reg) {
            effects.reads.push(Read { reg, role: Role::Merged });
        }
    }
}

/// Whether it shifts or rotates by `cl`: a count of zero leaves the flags unchanged.
pub(super) fn shifts_by_cl(instruction: &Instruction) -> bool {
    use Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
    let count = match instruction.mnemonic() {
        Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shr => 1,
        Shld | Shrd => 2,
        _ => return false,
    };
    instruction.op_kind(count) == OpKind::Register && instruction.op_register(count) == Register::CL
}
