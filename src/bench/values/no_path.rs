//! Why a loop of several blocks has no path that stands for it.

use std::fmt;
use tma::{Cause, Error};

/// Why a loop of several blocks has no path that stands for it.
#[derive(Debug, Clone, PartialEq)]
pub enum NoPath {
    /// It was not looked for.
    Unknown,
    /// Its code cannot be decoded.
    Undecodable(Cause<Error>),
    /// No iteration was followed from its beginning to its end.
    NoIteration,
    /// Its data cannot be addressed from where the loop begins.
    FarData,
    /// It has no other instructions than jumps.
    OnlyJumps,
    /// Iterations take several paths: how many, and the share of the most frequent one.
    Several(usize, f64),
}

impl fmt::Display for NoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "its path is not known",
            Self::Undecodable(error) => return error.fmt(f),
            Self::NoIteration => "no whole iteration was followed",
            Self::FarData => "its data are too far away",
            Self::OnlyJumps => "it has only jumps",
            Self::Several(paths, share) => {
                return write!(
                    f,
                    "its iterations take {paths} paths, the most frequent one {:.0} % of them",
                    100.0 * share
                );
            }
        })
    }
}

impl From<Error> for NoPath {
    fn from(error: Error) -> Self {
        Self::Undecodable(error.into())
    }
}
