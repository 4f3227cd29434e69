//! Why there is no trampoline for an instruction.

use iced_x86::{IcedError, Mnemonic};
use isa::names::name;
use std::fmt;
use tma::Cause;

/// Why there is no trampoline for an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTrampoline {
    /// An operand is out of reach from the trampoline.
    TooFar,
    /// An instruction has a 32-bit address relative to itself.
    Narrow,
    /// An instruction cannot be encoded at another address.
    Immovable(Mnemonic),
    /// The encoder refuses the instructions.
    Unencoded(Cause<IcedError>),
    /// No jump reaches the trampoline.
    OutOfReach,
    /// It is longer than planned.
    TooLong,
    /// The address of a load or a jump has 32 bits.
    NarrowAddress,
    /// The outcome is requested of an instruction that is no conditional jump on flags.
    Unconditional,
    /// The target is requested of an instruction that is no indirect jump or call within a segment.
    Direct,
    /// It jumps to the stack.
    ToStack,
    /// The request has a record of its own, not a value.
    NoValue,
    /// Too many loads are timed.
    ManyTimed,
    /// Too many blocks are recorded.
    ManyRecorded,
    /// The instructions differ from those of the plan.
    OtherCode,
}

impl fmt::Display for NoTrampoline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Immovable(mnemonic) => return write!(f, "{} cannot be moved", name(*mnemonic)),
            Self::Unencoded(error) => {
                return write!(f, "its instructions cannot be moved: {error}");
            }
            Self::TooFar => "its instructions cannot be moved so far",
            Self::Narrow => "an address of its instructions has 32 bits",
            Self::OutOfReach => "its trampoline is too far away",
            Self::TooLong => "its trampoline would be too long",
            Self::NarrowAddress => "its address has 32 bits",
            Self::Unconditional => "it is no conditional jump on flags",
            Self::Direct => "it is no indirect jump or call within a segment",
            Self::ToStack => "it jumps to the stack",
            Self::NoValue => "it has a record of its own",
            Self::ManyTimed => "too many loads are timed",
            Self::ManyRecorded => "too many blocks are recorded",
            Self::OtherCode => "its instructions are not those of the plan",
        })
    }
}

impl std::error::Error for NoTrampoline {}

impl From<IcedError> for NoTrampoline {
    fn from(error: IcedError) -> Self {
        Self::Unencoded(error.into())
    }
}
