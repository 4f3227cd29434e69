//! Registers read and written, and what for.

use super::model::{Effects, Paths, RSP, Read, Role, Write};
use super::place::Place;
use iced_x86::{EncodingKind, Instruction, InstructionInfo, Mnemonic, OpAccess, OpKind, Register};
use tma::tables::Facts;
use tma::tables::facts::FalseDependence;

/// Adds the registers that `instruction` reads and writes. Memory is known already.
pub(super) fn add(
    effects: &mut Effects,
    instruction: &Instruction,
    facts: &InstructionInfo,
    core: &Facts,
) {
    let mut addresses = add_addresses(effects);
    let kept = keeps_rest(instruction).then(|| Place::of(instruction.op0_register())).flatten();
    for used in facts.used_registers() {
        let Some(place) = Place::of(used.register()) else { continue };
        let access = used.access();
        if access == OpAccess::Read
            && let Some(at) = addresses.iter().position(|a| *a == place)
        {
            addresses.swap_remove(at);
            continue;
        }
        if matches!(access, OpAccess::None | OpAccess::NoMemAccess) {
            continue;
        }
        let writes = is_write(access);
        let role = match () {
            () if effects.paths == Paths::Stack && place == RSP => Role::Stack,
            // Of the destination's two mentions the one that is written is the one kept. A gather's
            // is no other operand (Intel SDM).
            () if kept == Some(place) && (writes || instruction.is_vsib()) => Role::Kept,
            () if access == OpAccess::CondWrite && !selects(instruction) => Role::Kept,
            () => Role::Data,
        };
        if is_read(access) {
            add_read(effects, Read { place, role });
        }
        if writes {
            add_write(effects, used.register(), access, place);
        }
    }
    if instruction.mnemonic() == Mnemonic::Push
        && instruction.op0_register().full_register() == Register::RSP
    {
        add_read(effects, Read { place: RSP, role: Role::Data });
    }
    false_reads(effects, instruction, core);
    true_joins(effects, instruction, core);
    if memory_bit_offset(instruction)
        && let Some(place) = Place::of(instruction.op1_register())
    {
        add_read(effects, Read { place, role: Role::Address(0) });
    }
}

/// Adds the registers that addresses are made of; returns them, as often as they are used.
fn add_addresses(effects: &mut Effects) -> Vec<Place> {
    let mut all = Vec::new();
    for at in 0..effects.memory.len() {
        let access = effects.memory[at];
        if access.lane.is_some_and(|lane| lane > 0) {
            continue;
        }
        let role = Role::Address(u8::try_from(at).unwrap_or(u8::MAX));
        for register in [access.base, access.index] {
            if let Some(place) = Place::of(register) {
                effects.reads.push(Read { place, role });
                all.push(place);
            }
        }
        if access.segment != Register::None {
            effects.reads.push(Read { place: Place::OTHER, role });
            all.push(Place::OTHER);
        }
    }
    all
}

fn add_read(effects: &mut Effects, read: Read) {
    let same = |r: &Read| r.place == read.place && (r.role == read.role || read.role == Role::Kept);
    if !effects.reads.iter().any(|r| same(r) && !matches!(r.role, Role::Address(_))) {
        effects.reads.push(read);
    }
}

fn add_write(effects: &mut Effects, register: Register, access: OpAccess, place: Place) {
    let always = matches!(access, OpAccess::Write | OpAccess::ReadWrite);
    let partial = is_partial(register);
    let whole = always && !partial && !keeps_upper_half(register);
    match effects.writes.iter_mut().find(|w| w.place == place) {
        Some(write) => write.whole |= whole,
        None => effects.writes.push(Write { place, whole }),
    }
    if partial {
        add_read(effects, Read { place, role: Role::Kept });
    }
}

/// 8 or 16 bits of a general-purpose register: the rest of it stays.
fn is_partial(register: Register) -> bool {
    register.is_gpr8() || register.is_gpr16()
}

/// Legacy SSE: what is above bit 127 stays. iced-x86 names VEX and EVEX results by their whole
/// register.
fn keeps_upper_half(register: Register) -> bool {
    register.is_xmm()
}

fn is_read(access: OpAccess) -> bool {
    use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite};
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite | CondWrite)
}

fn is_write(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// Whether the destination's old value is one of two chosen from, an operand like the other.
fn selects(instruction: &Instruction) -> bool {
    instruction.condition_code() != iced_x86::ConditionCode::None
        || matches!(instruction.mnemonic(), Mnemonic::Cmpxchg)
}

/// Whether the destination's old value is there to be kept in part, not computed with: scalar
/// results and inserted elements in a vector, merge-masking, and elements that a gather leaves out.
fn keeps_rest(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    if instruction.is_vsib() && instruction.op0_kind() == OpKind::Register {
        return instruction.op0_register().is_vector_register();
    }
    if instruction.has_op_mask() && instruction.merging_masking() {
        return instruction.op0_kind() == OpKind::Register && !accumulates(instruction);
    }
    if instruction.code().op_code().encoding() != EncodingKind::Legacy {
        return false;
    }
    matches!(
        instruction.mnemonic(),
        M::Cvtsi2sd
            | M::Cvtsi2ss
            | M::Cvtss2sd
            | M::Cvtsd2ss
            | M::Sqrtsd
            | M::Sqrtss
            | M::Rcpss
            | M::Rsqrtss
            | M::Roundsd
            | M::Roundss
            | M::Movsd
            | M::Movss
            | M::Movlps
            | M::Movhps
            | M::Movlpd
            | M::Movhpd
            | M::Movlhps
            | M::Movhlps
            | M::Pinsrb
            | M::Pinsrw
            | M::Pinsrd
            | M::Pinsrq
            | M::Insertps
            | M::Cvtpi2ps
    )
}

/// Whether the destination is an operand even without a mask.
fn accumulates(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let mnemonic = instruction.mnemonic();
    is_fused_multiply(mnemonic)
        || matches!(
            mnemonic,
            M::Vpternlogd
                | M::Vpternlogq
                | M::Vpermi2b
                | M::Vpermi2w
                | M::Vpermi2d
                | M::Vpermi2q
                | M::Vpermi2ps
                | M::Vpermi2pd
                | M::Vpermt2b
                | M::Vpermt2w
                | M::Vpermt2d
                | M::Vpermt2q
                | M::Vpermt2ps
                | M::Vpermt2pd
                | M::Vpdpbusd
                | M::Vpdpbusds
                | M::Vpdpwssd
                | M::Vpdpwssds
                | M::Vpmadd52huq
                | M::Vpmadd52luq
                | M::Vdpbf16ps
                | M::Vfixupimmpd
                | M::Vfixupimmps
                | M::Vfixupimmsd
                | M::Vfixupimmss
                | M::Vpshldvw
                | M::Vpshldvd
                | M::Vpshldvq
                | M::Vpshrdvw
                | M::Vpshrdvd
                | M::Vpshrdvq
        )
}

/// The families `vfmadd132pd` … `vfnmsub231ss`, by the order of the mnemonics' names.
fn is_fused_multiply(mnemonic: Mnemonic) -> bool {
    let between = |low: Mnemonic, high: Mnemonic| {
        (low as usize..=high as usize).contains(&(mnemonic as usize))
    };
    between(Mnemonic::Vfmadd132pd, Mnemonic::Vfmsubps)
        || between(Mnemonic::Vfmsubsd, Mnemonic::Vfnmsubss)
}

/// `bts [m],r`: the register is part of the address too.
fn memory_bit_offset(instruction: &Instruction) -> bool {
    super::memory::is_bit_string(instruction)
}

/// Results that a processor waits for though nothing of them is used.
fn false_reads(effects: &mut Effects, instruction: &Instruction, core: &Facts) {
    let waits = match instruction.mnemonic() {
        Mnemonic::Popcnt => core.waits(FalseDependence::Popcnt),
        Mnemonic::Lzcnt | Mnemonic::Tzcnt => core.waits(FalseDependence::Lzcnt),
        _ => false,
    };
    if let Some(place) = Place::of(instruction.op0_register()).filter(|_| waits) {
        add_read(effects, Read { place, role: Role::Kept });
    }
}

/// `vzeroupper` and `vzeroall` name all vectors; most processors do them at renaming.
fn true_joins(effects: &mut Effects, instruction: &Instruction, core: &Facts) {
    if instruction.mnemonic() == Mnemonic::Vzeroupper && core.false_dependences.is_some() {
        let vector = |place: Place| (16..48).contains(&place.index());
        effects.reads.retain(|r| !vector(r.place));
        effects.writes.retain(|w| !vector(w.place));
    }
}
