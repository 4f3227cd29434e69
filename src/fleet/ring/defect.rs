//! What can be wrong with a file of a ring.

use std::fmt;
use std::io;
use tma::Cause;

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defect {
    /// It cannot be read.
    Unread(Cause<io::Error>),
    /// It has more bytes than a window can have, packed or unpacked.
    TooLarge,
    /// It ends too early.
    Cut,
    /// Its checksum or packing is wrong.
    Garbled,
    /// It is no document of a window.
    NoWindow(Cause<serde_json::Error>),
    /// It is a document of another kind or version.
    Schema(String),
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(error) => error.fmt(f),
            Self::TooLarge => f.write_str("it is larger than a window can be"),
            Self::Cut => f.write_str("it ends too early"),
            Self::Garbled => f.write_str("its checksum is wrong"),
            Self::NoWindow(error) => write!(f, "it is no window: {error}"),
            Self::Schema(schema) => write!(f, "it is `{schema}`, which this version cannot read"),
        }
    }
}
