//! Instruction → [`Effects`].

use super::arch_reg::ArchReg;
use super::model::{Effects, Paths, Read, Role, Write};
use super::{flags, idioms, memory, registers, x87};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, Register};
use tma::tables::Facts;

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
        memory::add(&mut effects, instruction, info);
        registers::add(&mut effects, instruction, info, &self.core);
        flags::add(&mut effects, instruction, &self.core);
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
    if memory::is_bit_string(instruction) {
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
