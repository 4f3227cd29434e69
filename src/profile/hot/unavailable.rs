//! Why the code of a block or function is unavailable.

use crate::files::Gap;
use std::fmt;

/// Why the code of a block or function is unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// Its module is unavailable.
    Gap(Gap),
    /// No module is mapped there.
    NoMapping,
    /// The bytes of its symbol: none, or more than any function has.
    Length(u64),
    /// It is in the kernel, or in memory without a file.
    NoFile,
    /// Its file of this path cannot be read.
    Unread(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap(gap) => gap.fmt(f),
            Self::NoMapping => f.write_str("no mapping is known at its address"),
            Self::Length(bytes) => write!(f, "its symbol is {bytes} bytes long"),
            Self::NoFile => f.write_str("its code is in the kernel or in anonymous memory"),
            Self::Unread(path) => write!(f, "{path} cannot be read"),
        }
    }
}

impl From<Gap> for Unavailable {
    fn from(gap: Gap) -> Self {
        Self::Gap(gap)
    }
}
