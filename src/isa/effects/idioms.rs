//! Dependency-breaking idioms and instructions eliminated at register renaming.

use super::model::{ArchReg, Effects, Role};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use tma::tables::Facts;
use tma::tables::facts::{Renamed, ZeroIdiom};

/// Removes reads that an idiom does not depend on, and marks instructions that renaming may
/// eliminate.
pub(super) fn apply(effects: &mut Effects, instruction: &Instruction, core: &Facts) {
    if let Some(source) = same_sources(instruction) {
        if breaks(instruction, core) {
            let depends = |role: Role| matches!(role, Role::Merged | Role::Address(_));
            let reg = ArchReg::of(source);
            effects.reads.retain(|r| Some(r.reg) != reg || depends(r.role));
            effects.breaks_dependency = true;
        } else {
            // iced-x86 omits the sources of `xor al,al` and others, which no processor treats as idioms.
            restore(effects, source);
        }
    }
    effects.may_be_eliminated = is_eliminated(instruction, core);
}

fn restore(effects: &mut Effects, source: Register) {
    if let Some(reg) = ArchReg::of(source)
        && !effects.reads.iter().any(|r| r.reg == reg && r.role == Role::Data)
    {
        effects.reads.retain(|r| r.reg != reg || r.role != Role::Merged);
        effects.reads.push(super::Read { reg, role: Role::Data });
    }
}

/// The register that is both sources of a potential idiom.
fn same_sources(instruction: &Instruction) -> Option<Register> {
    let operand = |at: u32| {
        (at < instruction.op_count() && instruction.op_kind(at) == OpKind::Register)
            .then(|| instruction.op_register(at))
    };
    let (first, second) = match (operand(0), operand(1), operand(2)) {
        (_, first, Some(second)) => (first?, second),
        (first, Some(second), None) if instruction.op_count() == 2 => (first?, second),
        _ => return None,
    };
    (first == second).then_some(first).filter(|_| kind(instruction.mnemonic()).is_some())
}

/// Two operands that name one register, where that may change how processors treat the instruction: zeroing idioms
/// (`xor eax,eax`, `vpxor xmm0,xmm1,xmm1`), and moves, which are eliminated only between different registers (`mov
/// eax,eax`). Code that assigns other registers must keep the two equal.
///
/// ```
/// use isa::code::{Block, parse_hex};
/// use isa::effects::tied_operands;
///
/// // xor eax, ebx; xor eax, eax; vpxor xmm0, xmm1, xmm1; mov eax, eax
/// let block = Block::decode(&parse_hex("31d8, 31c0, c5f1efc1, 89c0")?)?;
/// let tied: Vec<_> = block.instructions.iter().map(|i| tied_operands(&i.decoded)).collect();
/// assert_eq!(tied, [None, Some((0, 1)), Some((1, 2)), Some((0, 1))]);
/// # Ok::<(), tma::Error>(())
/// ```
pub fn tied_operands(instruction: &Instruction) -> Option<(usize, usize)> {
    if same_sources(instruction).is_some() {
        return Some(if instruction.op_count() == 2 { (0, 1) } else { (1, 2) });
    }
    let register = |at| {
        (instruction.op_kind(at) == OpKind::Register)
            .then(|| instruction.op_register(at).full_register())
    };
    let moves = instruction.op_count() == 2 && is_move(instruction.mnemonic());
    (moves && register(0)? == register(1)?).then_some((0, 1))
}

/// Kinds of idioms, distinguished where processors differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Idiom {
    /// `xor`, `sub`.
    Integer,
    /// `sbb`: the result depends only on the carry flag.
    Borrow,
    /// `cmp`: writes only flags.
    Compare,
    /// `pxor`, `xorps`, `psub*`.
    VectorZero,
    /// `psubs*`, `psubus*`.
    SaturatingZero,
    /// `pcmpgt*`.
    Greater,
    /// `pcmpeq*`.
    Equal,
    /// `pandn`, `andnps`.
    AndNot,
    /// `kxor`, `kandn`.
    Mask,
    /// `kxnor`.
    MaskOnes,
    /// `vpternlog` of 0 or 0xff.
    Ternary,
}

fn kind(mnemonic: Mnemonic) -> Option<Idiom> {
    use Mnemonic as M;
    Some(match mnemonic {
        M::Xor | M::Sub => Idiom::Integer,
        M::Sbb => Idiom::Borrow,
        M::Cmp => Idiom::Compare,
        M::Pxor
        | M::Vpxor
        | M::Vpxord
        | M::Vpxorq
        | M::Xorps
        | M::Vxorps
        | M::Xorpd
        | M::Vxorpd
        | M::Psubb
        | M::Vpsubb
        | M::Psubw
        | M::Vpsubw
        | M::Psubd
        | M::Vpsubd
        | M::Psubq
        | M::Vpsubq => Idiom::VectorZero,
        M::Psubsb
        | M::Vpsubsb
        | M::Psubsw
        | M::Vpsubsw
        | M::Psubusb
        | M::Vpsubusb
        | M::Psubusw
        | M::Vpsubusw => Idiom::SaturatingZero,
        M::Pcmpgtb
        | M::Vpcmpgtb
        | M::Pcmpgtw
        | M::Vpcmpgtw
        | M::Pcmpgtd
        | M::Vpcmpgtd
        | M::Pcmpgtq
        | M::Vpcmpgtq => Idiom::Greater,
        M::Pcmpeqb
        | M::Vpcmpeqb
        | M::Pcmpeqw
        | M::Vpcmpeqw
        | M::Pcmpeqd
        | M::Vpcmpeqd
        | M::Pcmpeqq
        | M::Vpcmpeqq => Idiom::Equal,
        M::Pandn
        | M::Vpandn
        | M::Vpandnd
        | M::Vpandnq
        | M::Andnps
        | M::Vandnps
        | M::Andnpd
        | M::Vandnpd => Idiom::AndNot,
        M::Kxorb
        | M::Kxorw
        | M::Kxord
        | M::Kxorq
        | M::Kandnb
        | M::Kandnw
        | M::Kandnd
        | M::Kandnq => Idiom::Mask,
        M::Kxnorb | M::Kxnorw | M::Kxnord | M::Kxnorq => Idiom::MaskOnes,
        M::Vpternlogd | M::Vpternlogq => Idiom::Ternary,
        _ => return None,
    })
}

/// Whether this core recognises that the result does not depend on the sources.
fn breaks(instruction: &Instruction, core: &Facts) -> bool {
    let Some(idiom) = kind(instruction.mnemonic()) else { return false };
    // Masked instructions are never handled at renaming.
    if instruction.has_op_mask() {
        return false;
    }
    let register = instruction.op0_register();
    match idiom {
        Idiom::Integer => register.size() >= 4,
        Idiom::Borrow | Idiom::Compare => {
            core.has_idiom(if idiom == Idiom::Borrow { ZeroIdiom::Sbb } else { ZeroIdiom::Cmp })
                && register.size() >= 4
        }
        Idiom::VectorZero | Idiom::Greater | Idiom::Equal => !register.is_mm(),
        Idiom::SaturatingZero => core.has_idiom(ZeroIdiom::SaturatingSubtract),
        Idiom::AndNot => core.has_idiom(ZeroIdiom::AndNot),
        Idiom::Mask | Idiom::MaskOnes => {
            core.has_idiom(ZeroIdiom::MaskXor) && !is_mask_and_not(instruction.mnemonic())
        }
        Idiom::Ternary => false,
    }
}

/// Whether this core may eliminate the instruction at renaming.
fn is_eliminated(instruction: &Instruction, core: &Facts) -> bool {
    use Mnemonic as M;
    if core.renamed.is_none() || instruction.has_op_mask() {
        return false;
    }
    let registers = instruction.op_count() == 2
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() != instruction.op1_register();
    if !registers {
        return core.renames(Renamed::AddConstant) && adds_constant(instruction);
    }
    let (to, from) = (instruction.op0_register(), instruction.op1_register());
    match instruction.mnemonic() {
        M::Mov if to.is_gpr() && from.is_gpr() => to.size() >= 4 && core.renames(Renamed::Mov),
        M::Movzx => {
            let high = matches!(from, Register::AH | Register::BH | Register::CH | Register::DH);
            to.size() >= 4
                && from.is_gpr8()
                && !high
                && core.renames(Renamed::Movzx)
                && to.full_register() != from.full_register()
        }
        mnemonic if is_vector_move(mnemonic) => {
            to.is_vector_register() && from.is_vector_register() && core.renames(Renamed::VectorMov)
        }
        _ => false,
    }
}

/// Moves of whole registers.
fn is_move(mnemonic: Mnemonic) -> bool {
    matches!(mnemonic, Mnemonic::Mov | Mnemonic::Movzx) || is_vector_move(mnemonic)
}

fn is_vector_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Movaps
            | M::Movapd
            | M::Movdqa
            | M::Movups
            | M::Movupd
            | M::Movdqu
            | M::Vmovaps
            | M::Vmovapd
            | M::Vmovdqa
            | M::Vmovups
            | M::Vmovupd
            | M::Vmovdqu
            | M::Vmovdqa32
            | M::Vmovdqa64
            | M::Vmovdqu8
            | M::Vmovdqu16
            | M::Vmovdqu32
            | M::Vmovdqu64
    )
}

/// `kandn*`, which Golden Cove does not recognise as an idiom, unlike `kxor*` and `kxnor*`.
fn is_mask_and_not(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Kandnb, Kandnd, Kandnq, Kandnw};
    matches!(mnemonic, Kandnb | Kandnw | Kandnd | Kandnq)
}

/// Whether it adds an 8-bit constant to a 64-bit register, which Golden Cove does at renaming.
/// Measured: `add`, `sub`, `inc`, `dec` and `lea` with only a base; not `add` of 100000, nor any of
/// them with 32-bit operands (tests/figures/pending.csv).
fn adds_constant(instruction: &Instruction) -> bool {
    let whole = instruction.op0_kind() == OpKind::Register && instruction.op0_register().is_gpr64();
    let base_alone = || {
        instruction.memory_index() == Register::None
            && instruction.memory_base().is_gpr64()
            && i8::try_from(instruction.memory_displacement64() as i64).is_ok()
    };
    whole
        && match instruction.mnemonic() {
            Mnemonic::Inc | Mnemonic::Dec => true,
            Mnemonic::Add | Mnemonic::Sub => instruction.op1_kind() == OpKind::Immediate8to64,
            Mnemonic::Lea => base_alone(),
            _ => false,
        }
}
