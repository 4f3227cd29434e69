//! Why code cannot be run elsewhere than in its program.

use iced_x86::Mnemonic;
use isa::names::small;
use std::fmt;
use tma::{Cause, Error};

/// Why code cannot be run elsewhere than in its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Immovable {
    /// Bytes between its parts, or within the reach of its short jumps, do not suffice for jumps to its end.
    NoRoom,
    /// There is none.
    NoCode,
    /// It extends over so many bytes.
    Long(u64),
    /// It cannot be decoded.
    Undecodable(Cause<Error>),
    /// An instruction calls or jumps elsewhere.
    Leaves(Mnemonic),
    /// An instruction must not be run: the reason.
    Refused(String),
    /// Its entry is within an instruction.
    Entry,
    /// Counting its iterations would change a flag that it reads.
    LiveFlag,
}

impl fmt::Display for Immovable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoom => "there is no room for a jump out of it",
            Self::NoCode => "it has no code",
            Self::Long(bytes) => return write!(f, "its code extends over {bytes} bytes"),
            Self::Undecodable(error) => return error.fmt(f),
            Self::Leaves(name) => {
                return write!(f, "its `{}` calls or jumps elsewhere", small(*name));
            }
            Self::Refused(reason) => reason,
            Self::Entry => "it is entered within an instruction",
            Self::LiveFlag => {
                "a flag is live from one iteration to the next, so that nothing can count them"
            }
        })
    }
}

impl From<Error> for Immovable {
    fn from(error: Error) -> Self {
        Self::Undecodable(error.into())
    }
}
