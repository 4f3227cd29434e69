//! The computations that the simulator evaluates.

use iced_x86::ConditionCode;

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
