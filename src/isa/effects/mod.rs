//! Registers, flag groups and memory that an instruction reads and writes, including partial writes
//! and implicit operands. Dependencies, latencies and microbenchmarks all use this one model.
//!
//! | file | concern |
//! |---|---|
//! | `model` | registers and flag groups; the effects of an instruction as data: [`Effects`] |
//! | `registers` | registers and memory operands read and written |
//! | `x87` | x87 registers, by instruction and over a region |
//! | `idioms` | zeroing idioms and move elimination |
//!
//! # Corrections of iced-x86
//!
//! Most effects come from iced-x86. This module corrects what it omits or reports differently, per
//! microarchitecture where processors differ. What was measured on Emerald Rapids (Golden Cove), the blocks of
//! tests/figures/corrections.py show; "all" is then extrapolated from that core.
//!
//! | instructions | iced-x86 | here | cores | evidence |
//! |---|---|---|---|---|
//! | cmov of 16 and 64 bits | destination conditionally written | destination is a source operand | all | measured on Emerald Rapids |
//! | bsf, bsr | destination conditionally written | destination merged: a true dependency | all | measured on Emerald Rapids |
//! | pcmpeq* with equal registers | reads the register | does not read it | all known | measured on Emerald Rapids |
//! | pcmpgt* with equal registers | reads the register | does not read it | all known | measured on Emerald Rapids |
//! | psubs*, psubus* with equal registers | reads the register | does not read it | Haswell and later, Zen | measured on Emerald Rapids |
//! | pcmpeq*, pcmpgt* with equal registers into a mask register | reads the register | does not read it | all known | measured on Emerald Rapids |
//! | zeroing idioms under a mask | xor and sub do not read the register | reads the register | Golden Cove | measured on Emerald Rapids |
//! | pandn, andnps, andnpd with equal registers | reads the register | does not read it | Zen | AMD Software Optimization Guide for family 19h; Agner Fog, microarchitecture (untested) |
//! | kxor, kxnor with equal registers | reads the register | does not read it | Golden Cove | measured on Emerald Rapids |
//! | sbb with equal registers | reads the register and CF | only CF | Zen | AMD Software Optimization Guide for family 19h; Agner Fog, microarchitecture (untested) |
//! | cmp with equal registers | reads the register | does not read it | Zen | AMD Software Optimization Guide for family 19h; Agner Fog, microarchitecture (untested) |
//! | xor, sub with equal registers, 8 or 16 bits | only writes the register | reads the register | all | measured on Emerald Rapids |
//! | writes to al, ax | writes that part | rest of rax merged: a true dependency | all | measured on Emerald Rapids |
//! | writes to ah, bh, ch, dh | writes that part | rest merged: a true dependency, 3 cycles on Golden Cove | all | measured on Emerald Rapids |
//! | shifts and rotates by cl | write flags | old flags are a true dependency, as a count of 0 leaves them | Intel | measured on Emerald Rapids |
//! | shifts and rotates by cl | write flags | old flags are no dependency, though a count of 0 leaves them | Zen | measured on a Zen 3 |
//! | flags | each flag separately | groups CF, OF and SF-ZF-AF-PF; inc and dec leave CF, adcx leaves OF | all | measured on Emerald Rapids |
//! | bt, bts, btr, btc | SF, AF, PF, OF undefined | ZF is unchanged, so the group SF-ZF-AF-PF counts as not written | all | Intel SDM vol. 2 |
//! | cmpxchg8b and others that set ZF alone | ZF written | the rest of its group is merged | all | Intel SDM vol. 2 |
//! | x87 | st registers | counted from the top of the stack; the whole stack, reported as not modelled, where that is not known | all | Intel SDM vol. 2 |
//! | vzeroupper | reads and writes all vectors | no dependency carried (upper halves zeroed) | all known | measured on Emerald Rapids |
//! | bt, bts, btr, btc of memory by a register | base and index | the register is part of the address; access size unknown | all | Intel SDM vol. 2 |
//! | repeated string instructions | size unknown | size unknown, conditional, reported as not modelled | all | Intel SDM vol. 2 |
//! | gathers and scatters | one access | one access per lane, conditional | all | Intel SDM vol. 2 |
//! | vmaskmov, maskmovdqu, masked loads and stores | unconditional | conditional | all | Intel SDM vol. 2 |
//! | merge-masking | destination read | merged: a true dependency | AVX-512 | measured on Emerald Rapids |
//! | cvtsi2sd, sqrtsd, cvtss2sd, movsd, pinsrd | destination read | merged: a true dependency | all | measured on Emerald Rapids |
//! | popcnt | no dependency on the destination | false dependency on the destination | Haswell to Cascade Lake | uops.info (untested) |
//! | lzcnt, tzcnt | no dependency on the destination | false dependency on the destination | Haswell and Broadwell | uops.info (untested) |
//! | mov of registers, 32 or 64 bits | – | may be eliminated at rename | all known except Ice Lake | measured on Emerald Rapids |
//! | mov of registers, 32 or 64 bits | – | executed (elimination disabled by microcode) | Ice Lake | uops.info (untested) |
//! | movzx from a low byte | – | may be eliminated at rename | Intel except Ice Lake | measured on Emerald Rapids |
//! | vector moves of registers | – | may be eliminated at rename | all known | measured on Emerald Rapids |
//! | add, sub of 8 bits, inc, dec, lea of a base; 64 bits | – | may be eliminated at rename | Golden Cove | measured on Emerald Rapids |
//! | push, pop, call, ret | rsp read and written | rsp is updated by the stack engine in 0 cycles | all | measured on Emerald Rapids |
//! | legacy SSE writes | 128 bits written | upper part merged; no dependency while it is zero | all known | Agner Fog, microarchitecture (untested) |
//! | xchg | both read and written | each operand's value flows only to the other | all | Intel SDM vol. 2 |
//! | xadd | both read and written | the second operand becomes the old first operand | all | Intel SDM vol. 2 |
//! | pop rsp | rsp read and written | rsp becomes the loaded value | all | Intel SDM vol. 2 |
//! | lods, stos, movs, scas, cmps | rsi, rdi and DF read | pointers advance by a constant, in the direction of DF | all | Intel SDM vol. 2 |
//! | ldmxcsr, stmxcsr | no register | MXCSR | all | Intel SDM vol. 2 |
//!
//! Measured on Emerald Rapids, where iced-x86 is right: pandn, andnps, andnpd with equal registers, Intel;
//! vpternlog with 0xff, Golden Cove; kandn with equal registers, Golden Cove; sbb with equal registers, Intel;
//! popcnt, lzcnt, tzcnt, Golden Cove; vpermd, vpermq, vpmullq (LLVM models one), Golden Cove.

mod idioms;
mod model;
mod registers;
#[cfg(test)]
mod tests;
pub(crate) mod x87;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register, RflagsBits};
use tma::tables::Facts;
use tma::tables::facts::FalseDependence;

pub use idioms::tied_operands;
pub use model::{Access, ArchReg, ArchRegSet, Effects, Paths, Read, Role, Write};

/// Computes effects; reuses its buffers between instructions.
///
/// ```
/// use isa::code::{Block, parse_hex};
/// use isa::effects::{ArchReg, Finder};
/// use tma::Core;
///
/// // add rax, [rbx+8]; sbb rcx, rcx
/// let block = Block::decode(&parse_hex("48 03 43 08, 48 19 c9")?)?;
/// let effects = |core: &Core| -> Vec<_> {
///     let mut finder = Finder::new(core.facts());
///     block.instructions.iter().map(|inst| finder.effects(&inst.decoded)).collect()
/// };
///
/// let [add, sbb] = &effects(&Core::modelled(&events::library(), "zen4")?)[..] else { panic!() };
/// assert!(add.read().has(ArchReg::gpr(0)) && add.read().has(ArchReg::gpr(3)), "rax and rbx");
/// assert!(add.written().has(ArchReg::CARRY));
/// let load = &add.memory[0];
/// assert_eq!((load.displacement, load.bytes, load.load, load.store), (8, 8, true, false));
///
/// // On Zen `sbb` of one register depends on the carry flag alone (AMD, optimization guide for
/// // family 19h); on Intel's cores also on the register.
/// assert!(sbb.read().has(ArchReg::CARRY) && !sbb.read().has(ArchReg::gpr(1)));
/// let intel = &effects(&Core::modelled(&events::library(), "spr")?)[1];
/// assert!(intel.read().has(ArchReg::gpr(1)));
/// # Ok::<(), tma::Error>(())
/// ```
#[derive(Debug)]
pub struct Finder {
    info: InstructionInfoFactory,
    core: Facts,
}

impl Finder {
    /// A finder for the core that `core` describes.
    pub fn new(core: &Facts) -> Self {
        Self { info: InstructionInfoFactory::new(), core: core.clone() }
    }

    /// The effects of `instruction`.
    pub fn effects(&mut self, instruction: &Instruction) -> Effects {
        if instruction.is_invalid() {
            return Effects { unmodelled: Some("invalid instruction"), ..Effects::default() };
        }
        let info = self.info.info(instruction);
        let mut effects = Effects { paths: paths(instruction), ..Effects::default() };
        registers::add_accesses(&mut effects, instruction, info);
        registers::add_registers(&mut effects, instruction, info, &self.core);
        add_flags(&mut effects, instruction, &self.core);
        control_words(&mut effects, instruction);
        x87::apply(&mut effects, instruction);
        idioms::apply(&mut effects, instruction, &self.core);
        effects.unmodelled = effects.unmodelled.or_else(|| unmodelled(instruction));
        effects
    }
}

fn paths(instruction: &Instruction) -> Paths {
    match instruction.mnemonic() {
        Mnemonic::Leave => Paths::Leave,
        Mnemonic::Xchg => Paths::Exchange,
        Mnemonic::Xadd => exchange_add(instruction),
        // `pop rsp`: the loaded value is the new `rsp`, so this is no stack-engine update.
        Mnemonic::Pop if instruction.op0_register().full_register() == Register::RSP => {
            Paths::AllToAll
        }
        Mnemonic::Enter | Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => Paths::AllToAll,
        _ if instruction.is_stack_instruction() => Paths::Stack,
        _ if instruction.is_string_instruction() => Paths::String,
        _ => Paths::AllToAll,
    }
}

fn exchange_add(instruction: &Instruction) -> Paths {
    let (first, second) = (instruction.op0_register(), instruction.op1_register());
    match ArchReg::of(second) {
        Some(reg) if ArchReg::of(first) != Some(reg) => Paths::ExchangeAdd(reg),
        _ => Paths::AllToAll,
    }
}

/// Adds MXCSR, for which iced-x86 has no register. Reads by floating-point operations are omitted:
/// it is rarely written, and processors do not rename it.
fn control_words(effects: &mut Effects, instruction: &Instruction) {
    match instruction.mnemonic() {
        Mnemonic::Ldmxcsr | Mnemonic::Vldmxcsr => {
            effects.writes.push(Write { reg: ArchReg::MXCSR, whole: true });
        }
        Mnemonic::Stmxcsr | Mnemonic::Vstmxcsr => {
            effects.reads.push(Read { reg: ArchReg::MXCSR, role: Role::Data });
        }
        _ => {}
    }
}

/// Why the effects of an instruction are incomplete, if they are.
fn unmodelled(instruction: &Instruction) -> Option<&'static str> {
    use Mnemonic as M;
    if instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
    {
        return Some("repeated string instruction: its length depends on rcx");
    }
    if registers::is_bit_string(instruction) {
        return Some("the bit offset in the register changes the address");
    }
    let reason = match instruction.mnemonic() {
        M::Enter => "enter: copied frame pointers are not modelled",
        M::Xlatb => "xlatb: only al is the index",
        M::Xsave
        | M::Xsave64
        | M::Xsavec
        | M::Xsavec64
        | M::Xsaveopt
        | M::Xsaveopt64
        | M::Xsaves
        | M::Xsaves64
        | M::Xrstor
        | M::Xrstor64
        | M::Xrstors
        | M::Xrstors64
        | M::Fxsave
        | M::Fxsave64
        | M::Fxrstor
        | M::Fxrstor64 => "saves or restores the whole processor state",
        M::Syscall
        | M::Sysenter
        | M::Sysexit
        | M::Sysret
        | M::Int
        | M::Int3
        | M::Int1
        | M::Into
        | M::Iret
        | M::Iretd
        | M::Iretq
        | M::Vmcall
        | M::Vmmcall => "leaves the program",
        M::Cpuid | M::Rdmsr | M::Wrmsr | M::Xgetbv | M::Xsetbv => "reads or sets processor state",
        M::Xbegin | M::Xend | M::Xabort => "transactions may be rolled back",
        _ if touches_tiles(instruction) => "tile registers are not modelled",
        _ => return None,
    };
    Some(reason)
}

fn touches_tiles(instruction: &Instruction) -> bool {
    instruction.op0_register().is_tmm()
        || instruction.op1_register().is_tmm()
        || matches!(instruction.mnemonic(), Mnemonic::Ldtilecfg | Mnemonic::Sttilecfg)
        || (instruction.mnemonic() == Mnemonic::Tilerelease
            && instruction.op0_register() == Register::None)
}

const SZAP_BITS: u32 = RflagsBits::SF | RflagsBits::ZF | RflagsBits::PF | RflagsBits::AF;

/// Adds the flag groups that `instruction` reads and writes.
///
/// A partial write merges the rest of the group (`cmpxchg8b` sets only ZF). A group counts as not
/// written if the instruction only leaves some of its flags undefined and the others unchanged (`bt`
/// leaves SF, PF and AF undefined and ZF unchanged).
fn add_flags(effects: &mut Effects, instruction: &Instruction, core: &Facts) {
    for reg in ArchReg::flags(instruction.rflags_read()) {
        effects.reads.push(Read { reg, role: Role::Data });
    }
    let defined =
        instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set();
    let modified = instruction.rflags_modified();
    let keeps_for_zero_count = shifts_by_cl(instruction);
    for reg in ArchReg::flags(modified) {
        let partial = reg == ArchReg::SZAP && modified & SZAP_BITS != SZAP_BITS;
        if partial && defined & SZAP_BITS == 0 {
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
fn shifts_by_cl(instruction: &Instruction) -> bool {
    use Mnemonic::{Rcl, Rcr, Rol, Ror, Sal, Sar, Shl, Shld, Shr, Shrd};
    let count = match instruction.mnemonic() {
        Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shr => 1,
        Shld | Shrd => 2,
        _ => return false,
    };
    instruction.op_kind(count) == OpKind::Register && instruction.op_register(count) == Register::CL
}
