//! What an instruction computes, as far as it is evaluated.

use iced_x86::ConditionCode;

/// What is computed. Names are the mnemonics'; whatever is not evaluated is [`Action::Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing but its memory accesses.
    Nothing,
    /// Everything written becomes unknown.
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
    /// Shifts of BMI2: no flags, the count in the second source.
    Shlx,
    Shrx,
    Sarx,
    Rorx,
    Shld,
    Shrd,
    /// Two or three operands, low half.
    Imul,
    /// One operand: rdx:rax = rax × operand.
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
    /// A call that is followed into the callee, which is the next instruction of the region.
    Call,
    /// A call that has come back: what the ABI lets it change is unknown.
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
    /// bt, bts, btr and btc of a register, or of memory by a constant.
    BitTest,
    BitSet,
    BitReset,
    BitComplement,
    Movs,
    Lods,
    Stos,
    /// scas and cmps: pointers move, the result is in flags that are not evaluated.
    Compare {
        scan: bool,
    },
    /// Lanes of vector registers from the low end; the rest of a register becomes 0.
    VectorMove,
    /// The same, the rest of a register stays.
    VectorMerge,
    VectorZero,
    /// Into or out of the second lane of eight bytes.
    HighLoad,
    HighStore,
    UnpackLow,
    Insert(u8),
    Extract(u8),
}
