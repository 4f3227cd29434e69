//! Why there is no trampoline for an instruction.

use iced_x86::{IcedError, Mnemonic};
use isa::names::name;
use std::fmt;
use tma::Cause;

/// Why there is no trampoline for an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTrampoline {
    /// What the instructions refer to is out of reach from there.
    TooFar,
    /// An instruction refers to an address of 32 bits, relative to itself.
    Narrow,
    /// An instruction has no form for another place.
    Immovable(Mnemonic),
    /// The encoder refuses the instructions.
    Unencoded(Cause<IcedError>),
    /// No jump reaches the trampoline.
    OutOfReach,
    /// It is longer than was planned.
    TooLong,
    /// The address of a load or a jump has 32 bits.
    NarrowAddress,
    /// The outcome is wished of what is no conditional jump on flags.
    Unconditional,
    /// The target is wished of what is no indirect jump or call within a segment.
    Direct,
    /// It jumps to the stack.
    ToStack,
    /// The wish has a record of its own, not a value.
    NoValue,
    /// More loads are timed than have a place for that.
    ManyTimed,
    /// More blocks are recorded than have a place for that.
    ManyRecorded,
    /// The instructions are not those that the plan is for.
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
