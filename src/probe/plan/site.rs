//! A probe for counts as data; why there is none for a block or an instruction.

use iced_x86::{IcedError, Mnemonic};
use isa::names::name;
use std::fmt;
use tma::Cause;

/// Bytes of `jmp rel32` and `call rel32`.
pub const JUMP: u64 = 5;
/// A prefix without effect on a jump: the one of CS (Intel SDM, volume 1, 3.3.7.1).
pub const PREFIX: u8 = 0x2e;

/// Kind of patch of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The target of a `call rel32` is changed.
    Retarget,
    /// A jump over one instruction of at least five bytes.
    Single,
    /// A jump over several instructions.
    Multi,
    /// A jump over one shorter instruction, whose displacement ends in the bytes after it. With so many prefixes before
    /// it, it ends in other bytes.
    Pun(u8),
}

impl Kind {
    /// Whether it is a pun.
    pub fn is_pun(self) -> bool {
        matches!(self, Self::Pun(_))
    }

    /// Bytes before the jump.
    pub fn prefixes(self) -> u64 {
        if let Self::Pun(prefixes) = self { prefixes.into() } else { 0 }
    }
}

/// The count, in the same trampoline, of a block that is entered only from the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Then {
    /// Index of the block.
    pub block: usize,
    /// Its first address.
    pub at: u64,
    /// Whether the count must preserve the flags.
    pub keeps_flags: bool,
}

/// A place for a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Index of its block.
    pub block: usize,
    /// Address of the first patched instruction (p_vaddr).
    pub at: u64,
    /// Address after the last patched instruction.
    pub next: u64,
    /// How it is patched.
    pub kind: Kind,
    /// Whether the count must preserve the flags.
    pub keeps_flags: bool,
    /// Blocks that begin among the patched instructions after the first.
    pub then: Vec<Then>,
    /// Address of its trampoline (p_vaddr); anywhere near if not given.
    pub trampoline: Option<u64>,
}

/// Why there is no probe for a block or an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPlace {
    /// No jump fits at the start of the block, and an unknown jump may lead to the rest.
    Hidden,
    /// Its instructions are shorter than a jump, and no reachable address is free.
    NoRoom {
        /// Whether the code has fixed addresses, so that others never come free.
        is_fixed: bool,
    },
    /// Other probes have the bytes of its instructions.
    Taken,
    /// It has no probe, and its count does not follow from others.
    Underived,
    /// No known jump leads to it.
    Unreached,
    /// None of its instructions may be moved.
    Immovable,
    /// Its count would follow from others that have no probe.
    Around,
    /// There is no known instruction at the address.
    Nowhere,
    /// The function has unknown jumps, so that a probe may replace only one instruction, and none
    /// is long enough.
    OneAtATime,
    /// Something may lead to this address, in bytes that a jump would replace.
    MayLead(u64),
    /// A call or another block follows too closely.
    Follows,
    /// There is no trampoline.
    Trampoline(NoTrampoline),
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = "no jump fits before it in its block";
        f.write_str(match self {
            Self::Trampoline(why) => return why.fmt(f),
            Self::OneAtATime => {
                return write!(
                    f,
                    "{before}: only one instruction at a time can be replaced, as not all jumps of its function are known"
                );
            }
            Self::MayLead(at) => {
                return write!(
                    f,
                    "{before}: something may lead to {at:#x}, in the bytes that one would replace"
                );
            }
            Self::Follows => {
                return write!(
                    f,
                    "{before}: a call, or another block, follows too early, and no free address fits a shorter one"
                );
            }
            Self::Hidden => {
                "a probe does not fit at its start, and an unresolved jump of the function may lead into its other bytes"
            }
            Self::NoRoom { is_fixed: true } => {
                "no free address that a jump over its instructions could reach: link it with -pie"
            }
            Self::NoRoom { is_fixed: false } => {
                "no free address that a jump over its instructions could reach: addresses differ from run to run, try again"
            }
            Self::Taken => "probes of other blocks have the bytes of its instructions",
            Self::Underived => "its count does not follow from others",
            Self::Unreached => "no known jump leads to it: it may be data",
            Self::Immovable => "it has no instruction that may be moved",
            Self::Around => "the probes around it cannot be placed",
            Self::Nowhere => "no known instruction is there",
        })
    }
}

impl std::error::Error for NoPlace {}

impl From<NoTrampoline> for NoPlace {
    fn from(why: NoTrampoline) -> Self {
        Self::Trampoline(why)
    }
}

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
