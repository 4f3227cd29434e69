//! The computations that the simulator evaluates, and which one an instruction is.

use iced_x86::{ConditionCode, Instruction, Mnemonic as M, OpKind, Register};

/// The computation of an instruction, named after its mnemonic; [`Action::Unknown`] if it is not
/// evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// No computation, only memory accesses.
    Nothing,
    /// All results become unknown.
    Unknown,
    Move,
    MoveSigned,
    Lea,
    Add,
    Adc,
    Sub,
    Sbb,
    Cmp,
    And,
    Andn,
    Or,
    Xor,
    Test,
    Not,
    Neg,
    Inc,
    Dec,
    Shl,
    Shr,
    Sar,
    Rol,
    Ror,
    /// BMI2 shifts: no flags, the count is the second source.
    Shlx,
    Shrx,
    Sarx,
    Rorx,
    Shld,
    Shrd,
    /// Two or three operands, low half of the product.
    Imul,
    /// One operand, rdx:rax = rax × operand.
    MulWide,
    ImulWide,
    Mulx,
    Div,
    Idiv,
    Cmov(ConditionCode),
    Set(ConditionCode),
    Bswap,
    Exchange,
    ExchangeAdd,
    Push,
    Pop,
    Leave,
    /// A call that the region follows into the callee.
    Call,
    /// A call that the region does not follow: registers that the ABI lets the callee change become
    /// unknown.
    CallOver,
    Return,
    /// cbw, cwde, cdqe.
    ExtendAccumulator,
    /// cwd, cdq, cqo.
    ExtendIntoData,
    Popcnt,
    Tzcnt,
    Lzcnt,
    Bsf,
    Bsr,
    Bextr,
    Blsr,
    Blsi,
    Blsmsk,
    Bzhi,
    Pdep,
    Pext,
    SetCarry(Option<bool>),
    /// bt, bts, btr and btc of a register, or of memory with a constant bit offset.
    BitTest,
    BitSet,
    BitReset,
    BitComplement,
    /// loop, loope, loopne: rcx decreases by one.
    CountDown,
    /// rep movs and rep stos, evaluated where the count is known.
    RepeatMovs,
    RepeatStos,
    Movs,
    Lods,
    Stos,
    /// scas and cmps: pointers advance, and the flags become unknown.
    Compare {
        scan: bool,
    },
    /// A move of the low bytes of a vector register that zeroes the rest.
    VectorMove,
    /// A move of the low bytes of a vector register that keeps the rest.
    VectorMerge,
    VectorZero,
    /// A load or store of the second eight-byte lane.
    HighLoad,
    HighStore,
    UnpackLow,
    Insert(u8),
    Extract(u8),
}

/// The action of `instruction`. `followed` is whether the region follows it, if it is a call, into the
/// callee.
pub fn select_action(instruction: &Instruction, followed: bool) -> Action {
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if instruction.has_op_mask() {
        return Action::Unknown;
    }
    if repeated && instruction.is_string_instruction() {
        return match string(instruction) {
            Some(Action::Movs) => Action::RepeatMovs,
            Some(Action::Stos) => Action::RepeatStos,
            _ => Action::Unknown,
        };
    }
    integer(instruction)
        .or_else(|| bits(instruction))
        .or_else(|| flow(instruction, followed))
        .or_else(|| string(instruction))
        .or_else(|| vector(instruction))
        .unwrap_or(Action::Unknown)
}

fn integer(instruction: &Instruction) -> Option<Action> {
    if instruction.is_string_instruction() {
        return None;
    }
    Some(match instruction.mnemonic() {
        M::Mov if special(instruction) => Action::Unknown,
        M::Mov | M::Movzx | M::Movnti => Action::Move,
        M::Movsx | M::Movsxd => Action::MoveSigned,
        M::Lea => Action::Lea,
        M::Add => Action::Add,
        M::Adc => Action::Adc,
        M::Sub => Action::Sub,
        M::Sbb => Action::Sbb,
        M::Cmp => Action::Cmp,
        M::And => Action::And,
        M::Andn => Action::Andn,
        M::Or => Action::Or,
        M::Xor => Action::Xor,
        M::Test => Action::Test,
        M::Not => Action::Not,
        M::Neg => Action::Neg,
        M::Inc => Action::Inc,
        M::Dec => Action::Dec,
        M::Imul if instruction.op_count() == 1 => Action::ImulWide,
        M::Imul => Action::Imul,
        M::Mul => Action::MulWide,
        M::Mulx => Action::Mulx,
        M::Div => Action::Div,
        M::Idiv => Action::Idiv,
        M::Bswap | M::Movbe => Action::Bswap,
        M::Xchg => Action::Exchange,
        M::Xadd => Action::ExchangeAdd,
        M::Cbw | M::Cwde | M::Cdqe => Action::ExtendAccumulator,
        M::Cwd | M::Cdq | M::Cqo => Action::ExtendIntoData,
        M::Clc => Action::SetCarry(Some(false)),
        M::Stc => Action::SetCarry(Some(true)),
        M::Cmc => Action::SetCarry(None),
        _ => {
            let condition = instruction.condition_code();
            match conditional(instruction) {
                Some(true) => Action::Cmov(condition),
                Some(false) => Action::Set(condition),
                None => return None,
            }
        }
    })
}

/// Whether it is a conditional move (true) or set (false).
fn conditional(instruction: &Instruction) -> Option<bool> {
    use M::*;
    match instruction.mnemonic() {
        Cmova | Cmovae | Cmovb | Cmovbe | Cmove | Cmovg | Cmovge | Cmovl | Cmovle | Cmovne
        | Cmovno | Cmovnp | Cmovns | Cmovo | Cmovp | Cmovs => Some(true),
        Seta | Setae | Setb | Setbe | Sete | Setg | Setge | Setl | Setle | Setne | Setno
        | Setnp | Setns | Seto | Setp | Sets => Some(false),
        _ => None,
    }
}

/// A move from or to a segment, control or debug register.
fn special(instruction: &Instruction) -> bool {
    (0..2)
        .any(|i| instruction.op_kind(i) == OpKind::Register && !instruction.op_register(i).is_gpr())
}

fn bits(instruction: &Instruction) -> Option<Action> {
    Some(match instruction.mnemonic() {
        M::Shl | M::Sal => Action::Shl,
        M::Shr => Action::Shr,
        M::Sar => Action::Sar,
        M::Rol => Action::Rol,
        M::Ror => Action::Ror,
        M::Shlx => Action::Shlx,
        M::Shrx => Action::Shrx,
        M::Sarx => Action::Sarx,
        M::Rorx => Action::Rorx,
        M::Shld => Action::Shld,
        M::Shrd => Action::Shrd,
        M::Popcnt => Action::Popcnt,
        M::Tzcnt => Action::Tzcnt,
        M::Lzcnt => Action::Lzcnt,
        M::Bsf => Action::Bsf,
        M::Bsr => Action::Bsr,
        M::Bextr if instruction.op_kind(2) == OpKind::Register => Action::Bextr,
        M::Blsr => Action::Blsr,
        M::Blsi => Action::Blsi,
        M::Blsmsk => Action::Blsmsk,
        M::Bzhi => Action::Bzhi,
        // With a memory operand, a bit offset in a register also changes the address.
        M::Bt | M::Bts | M::Btr | M::Btc
            if instruction.op0_kind() == OpKind::Memory
                && instruction.op1_kind() == OpKind::Register =>
        {
            return None;
        }
        M::Bt => Action::BitTest,
        M::Bts => Action::BitSet,
        M::Btr => Action::BitReset,
        M::Btc => Action::BitComplement,
        M::Pdep => Action::Pdep,
        M::Pext => Action::Pext,
        _ => return None,
    })
}

fn flow(instruction: &Instruction, followed: bool) -> Option<Action> {
    Some(match instruction.mnemonic() {
        M::Push => Action::Push,
        M::Pop => Action::Pop,
        M::Leave => Action::Leave,
        M::Call if followed => Action::Call,
        M::Call => Action::CallOver,
        M::Ret => Action::Return,
        M::Nop | M::Jmp | M::Endbr64 => Action::Nothing,
        M::Loop | M::Loope | M::Loopne if counts_in_rcx(instruction) => Action::CountDown,
        M::Jrcxz => Action::Nothing,
        _ if instruction.is_jcc_short_or_near() => Action::Nothing,
        _ => return None,
    })
}

/// Whether a loop instruction counts in all of rcx, not in ecx or cx.
pub fn counts_in_rcx(instruction: &Instruction) -> bool {
    use iced_x86::Code as C;
    matches!(instruction.code(), C::Loop_rel8_64_RCX | C::Loope_rel8_64_RCX | C::Loopne_rel8_64_RCX)
}

fn string(instruction: &Instruction) -> Option<Action> {
    if !instruction.is_string_instruction() {
        return None;
    }
    Some(match instruction.mnemonic() {
        M::Movsb | M::Movsw | M::Movsd | M::Movsq => Action::Movs,
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => Action::Lods,
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => Action::Stos,
        M::Scasb | M::Scasw | M::Scasd | M::Scasq => Action::Compare { scan: true },
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq => Action::Compare { scan: false },
        _ => return None,
    })
}

/// Moves of whole vector registers and of pairs of pointers: compilers copy and spill pointers with
/// them.
fn vector(instruction: &Instruction) -> Option<Action> {
    use M::*;
    let memory = |i| i < instruction.op_count() && instruction.op_kind(i) == OpKind::Memory;
    let lane = || u8::try_from(instruction.try_immediate(instruction.op_count() - 1).unwrap_or(0));
    Some(match instruction.mnemonic() {
        Movaps | Movups | Movapd | Movupd | Movdqa | Movdqu | Lddqu | Movntps | Movntdq
        | Movntpd
            if !memory(0) =>
        {
            Action::VectorMerge
        }
        Movaps | Movups | Movapd | Movupd | Movdqa | Movdqu | Movntps | Movntdq | Movntpd
        | Vmovaps | Vmovups | Vmovapd | Vmovupd | Vmovdqa | Vmovdqu | Vmovdqa32 | Vmovdqa64
        | Vmovdqu8 | Vmovdqu16 | Vmovdqu32 | Vmovdqu64 | Vlddqu | Vmovntps | Vmovntdq
        | Vmovntpd | Movd | Movq | Vmovd | Vmovq => match touches_mmx(instruction) {
            true => return None,
            false => Action::VectorMove,
        },
        Movss | Movsd | Vmovss | Vmovsd if memory(0) || memory(1) => Action::VectorMove,
        Movss | Movsd => Action::VectorMerge,
        Movlps | Movlpd if memory(1) => Action::VectorMerge,
        Movlps | Movlpd | Vmovlps | Vmovlpd if memory(0) => Action::VectorMove,
        Movhps | Movhpd if memory(1) => Action::HighLoad,
        Movhps | Movhpd | Vmovhps | Vmovhpd if memory(0) => Action::HighStore,
        Pxor | Xorps | Xorpd if same(instruction, 0, 1) => Action::VectorZero,
        Vpxor | Vxorps | Vxorpd | Vpxord | Vpxorq if same(instruction, 1, 2) => Action::VectorZero,
        Punpcklqdq | Vpunpcklqdq
            if !memory(instruction.op_count() - 1) && instruction.op_register(0).is_xmm() =>
        {
            Action::UnpackLow
        }
        Pinsrq | Vpinsrq => Action::Insert(lane().ok()? & 1),
        Pextrq | Vpextrq => Action::Extract(lane().ok()? & 1),
        _ => return None,
    })
}

fn touches_mmx(instruction: &Instruction) -> bool {
    (0..instruction.op_count())
        .any(|i| instruction.op_kind(i) == OpKind::Register && instruction.op_register(i).is_mm())
}

fn same(instruction: &Instruction, a: u32, b: u32) -> bool {
    let register = |i| match instruction.op_kind(i) {
        OpKind::Register => instruction.op_register(i),
        _ => Register::None,
    };
    register(a) != Register::None && register(a) == register(b)
}
