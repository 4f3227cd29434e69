//! Registers read and written, and the role of each read; memory operands.

use super::model::{Access, ArchReg, Effects, Paths, RSP, Read, Role, Write};
use iced_x86::{
    CodeSize, EncodingKind, Instruction, InstructionInfo, Mnemonic, OpAccess, OpKind, Register,
    UsedMemory,
};
use tma::tables::Facts;
use tma::tables::facts::FalseDependence;

/// Adds the registers that `instruction` reads and writes. [`Effects::memory`] is already set.
pub(super) fn add_registers(
    effects: &mut Effects,
    instruction: &Instruction,
    facts: &InstructionInfo,
    core: &Facts,
) {
    let mut addresses = add_addresses(effects);
    let merged =
        merges_destination(instruction).then(|| ArchReg::of(instruction.op0_register())).flatten();
    for used in facts.used_registers() {
        let Some(reg) = ArchReg::of(used.register()) else { continue };
        let access = used.access();
        if access == OpAccess::Read
            && let Some(at) = addresses.iter().position(|a| *a == reg)
        {
            addresses.swap_remove(at);
            continue;
        }
        if matches!(access, OpAccess::None | OpAccess::NoMemAccess) {
            continue;
        }
        let writes = is_write(access);
        let role = match () {
            () if effects.paths == Paths::Stack && reg == RSP => Role::Stack,
            // If the destination is also a source operand, only the written mention is merged. The
            // destination of a gather cannot be another operand (Intel SDM).
            () if merged == Some(reg) && (writes || instruction.is_vsib()) => Role::Merged,
            () if access == OpAccess::CondWrite && !selects(instruction) => Role::Merged,
            () => Role::Data,
        };
        if is_read(access) {
            add_read(effects, Read { reg, role });
        }
        if writes {
            add_write(effects, used.register(), access, reg);
        }
    }
    if instruction.mnemonic() == Mnemonic::Push
        && instruction.op0_register().full_register() == Register::RSP
    {
        add_read(effects, Read { reg: RSP, role: Role::Data });
    }
    false_dependencies(effects, instruction, core);
    remove_vzeroupper(effects, instruction, core);
    if is_bit_string(instruction)
        && let Some(reg) = ArchReg::of(instruction.op1_register())
    {
        add_read(effects, Read { reg, role: Role::Address(0) });
    }
}

/// Adds the address registers of all accesses; returns them, with repetitions.
fn add_addresses(effects: &mut Effects) -> Vec<ArchReg> {
    let mut all = Vec::new();
    for at in 0..effects.memory.len() {
        let access = effects.memory[at];
        if access.lane.is_some_and(|lane| lane > 0) {
            continue;
        }
        let role = Role::Address(u8::try_from(at).unwrap_or(u8::MAX));
        for register in [access.base, access.index] {
            if let Some(reg) = ArchReg::of(register) {
                effects.reads.push(Read { reg, role });
                all.push(reg);
            }
        }
        if access.segment != Register::None {
            effects.reads.push(Read { reg: ArchReg::OTHER, role });
            all.push(ArchReg::OTHER);
        }
    }
    all
}

fn add_read(effects: &mut Effects, read: Read) {
    let same = |r: &Read| r.reg == read.reg && (r.role == read.role || read.role == Role::Merged);
    if !effects.reads.iter().any(|r| same(r) && !matches!(r.role, Role::Address(_))) {
        effects.reads.push(read);
    }
}

fn add_write(effects: &mut Effects, register: Register, access: OpAccess, reg: ArchReg) {
    let always = matches!(access, OpAccess::Write | OpAccess::ReadWrite);
    let partial = is_partial(register);
    let whole = always && !partial && !keeps_upper_half(register);
    match effects.writes.iter_mut().find(|w| w.reg == reg) {
        Some(write) => write.whole |= whole,
        None => effects.writes.push(Write { reg, whole }),
    }
    if partial {
        add_read(effects, Read { reg, role: Role::Merged });
    }
}

/// 8 or 16 bits of a general-purpose register, whose write leaves the rest unchanged.
fn is_partial(register: Register) -> bool {
    register.is_gpr8() || register.is_gpr16()
}

/// A legacy SSE destination, whose bits above 127 stay unchanged: iced-x86 reports the destination
/// of VEX and EVEX instructions as the full register.
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

/// Whether the destination's old value is an operand that the instruction selects from.
fn selects(instruction: &Instruction) -> bool {
    instruction.condition_code() != iced_x86::ConditionCode::None
        || matches!(instruction.mnemonic(), Mnemonic::Cmpxchg)
}

/// Whether the destination's old value is only merged, not an operand: scalar results and inserted
/// elements in a vector, merge-masking, and elements that a gather skips.
fn merges_destination(instruction: &Instruction) -> bool {
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

/// Whether the destination is a source operand even without a mask.
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

/// Whether it belongs to the families `vfmadd132pd` … `vfnmsub231ss`; relies on the alphabetical
/// order of iced-x86's mnemonics.
fn is_fused_multiply(mnemonic: Mnemonic) -> bool {
    let between = |low: Mnemonic, high: Mnemonic| {
        (low as usize..=high as usize).contains(&(mnemonic as usize))
    };
    between(Mnemonic::Vfmadd132pd, Mnemonic::Vfmsubps)
        || between(Mnemonic::Vfmsubsd, Mnemonic::Vfnmsubss)
}

/// Adds false dependencies on the destination.
fn false_dependencies(effects: &mut Effects, instruction: &Instruction, core: &Facts) {
    let waits = match instruction.mnemonic() {
        Mnemonic::Popcnt => core.waits(FalseDependence::Popcnt),
        Mnemonic::Lzcnt | Mnemonic::Tzcnt => core.waits(FalseDependence::Lzcnt),
        _ => false,
    };
    if let Some(reg) = ArchReg::of(instruction.op0_register()).filter(|_| waits) {
        add_read(effects, Read { reg, role: Role::Merged });
    }
}

/// Removes the vector registers from the effects of `vzeroupper` on known cores, which handle it at
/// renaming; iced-x86 lists them all as read and written.
fn remove_vzeroupper(effects: &mut Effects, instruction: &Instruction, core: &Facts) {
    if instruction.mnemonic() == Mnemonic::Vzeroupper && core.false_dependences.is_some() {
        let vector = |reg: ArchReg| (16..48).contains(&reg.index());
        effects.reads.retain(|r| !vector(r.reg));
        effects.writes.retain(|w| !vector(w.reg));
    }
}

pub(super) fn add_accesses(
    effects: &mut Effects,
    instruction: &Instruction,
    facts: &InstructionInfo,
) {
    let masked = is_masked(instruction);
    for used in facts.used_memory() {
        let access = access(instruction, used, masked);
        if !used.index().is_vector_register() {
            effects.memory.push(access);
            continue;
        }
        let lanes = lanes(instruction, used.index(), access.bytes);
        effects.memory.extend((0..lanes).map(|lane| Access { lane: Some(lane), ..access }));
    }
}

fn access(instruction: &Instruction, used: &UsedMemory, masked: bool) -> Access {
    use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite, Write};
    let kind = used.access();
    let segment = used.segment();
    let by_bits = is_bit_string(instruction);
    let bytes = used.memory_size().size();
    Access {
        segment: match segment {
            Register::FS | Register::GS => segment,
            _ => Register::None,
        },
        base: used.base().full_register(),
        index: match used.index() {
            vector if vector.is_vector_register() => vector,
            index => index.full_register(),
        },
        scale: u8::try_from(used.scale()).unwrap_or(1).max(1),
        displacement: used.displacement() as i64,
        bytes: if by_bits { 0 } else { u32::try_from(bytes).unwrap_or(0) },
        wide: used.address_size() != CodeSize::Code32,
        load: matches!(kind, Read | CondRead | ReadWrite | ReadCondWrite),
        store: matches!(kind, Write | CondWrite | ReadWrite | ReadCondWrite),
        conditional: masked || matches!(kind, CondRead | CondWrite),
        lane: None,
    }
}

/// Whether a mask may suppress elements of its memory operand.
fn is_masked(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    instruction.has_op_mask()
        || matches!(
            instruction.mnemonic(),
            M::Vmaskmovps
                | M::Vmaskmovpd
                | M::Vpmaskmovd
                | M::Vpmaskmovq
                | M::Maskmovq
                | M::Maskmovdqu
                | M::Vmaskmovdqu
        )
        || instruction.is_vsib()
}

/// Number of elements of a gather or scatter: as many as fit both the index register and the data
/// register. `element` is the size of one in memory, in bytes.
fn lanes(instruction: &Instruction, index: Register, element: u32) -> u8 {
    let index_bytes = if instruction.is_vsib64() { 8 } else { 4 };
    let indices = index.size() / index_bytes;
    let data = [instruction.op0_register(), instruction.op1_register()]
        .into_iter()
        .find(|r| r.is_vector_register());
    let held = match (data, usize::try_from(element)) {
        (Some(data), Ok(element)) if element > 0 => data.size() / element,
        _ => indices,
    };
    u8::try_from(indices.min(held)).unwrap_or(0)
}

/// Whether it is `bt`, `bts`, `btr` or `btc` on memory with the bit offset in a register, whose upper
/// bits are added to the address.
pub(super) fn is_bit_string(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc)
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register
}
