//! Why there is no probe for a block or an instruction.

use super::no_trampoline::NoTrampoline;
use std::fmt;

/// Why there is no probe for a block or an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPlace {
    /// No jump fits at the start of the block, and an unknown jump may lead to the rest.
    Hidden,
    /// Its instructions are shorter than a jump, and no reachable address is free.
    NoRoom,
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
                "no jump fits at its start, and an unknown jump of the function may lead to the rest"
            }
            Self::NoRoom => {
                "no free address that a jump over its instructions could reach: addresses differ from run to run, try \
                 again, or link it with -pie"
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
