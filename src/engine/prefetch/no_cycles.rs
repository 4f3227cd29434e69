//! Why an iteration of a loop was not measured.

use bench::{Assumed, NoPath};
use std::fmt;
use tma::{Cause, Error};

/// Why an iteration of a loop was not measured.
#[derive(Debug, Clone, PartialEq)]
pub enum NoCycles {
    /// The code of the load is not known.
    NoCode,
    /// The load is in no loop.
    NoLoop,
    /// Its loop has this many blocks, and no counts say which one follows which.
    Blocks(usize),
    /// The most frequent edges lead out of its loop.
    Leaves,
    /// The most frequent edges lead through a loop in it.
    Nested,
    /// The path through it is not one block.
    Path(NoPath),
    /// It cannot be decoded or run.
    Failed(Cause<Error>),
    /// Its loads miss the first cache in the sandbox.
    Misses {
        /// The assumption that does not hold.
        assumption: Assumed,
        /// How that was found.
        how: String,
    },
    /// Too few of this many measurements are stable; why the last of the others is not.
    Unstable(usize, Option<String>),
    /// Neither as it is nor, for the second reason, with all of its loads from one address.
    Both(Box<NoCycles>, Box<NoCycles>),
}

impl From<NoPath> for NoCycles {
    fn from(why: NoPath) -> Self {
        Self::Path(why)
    }
}

impl From<Error> for NoCycles {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl fmt::Display for NoCycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocks(blocks) => {
                return write!(f, "the loop has {blocks} blocks, and only one can be measured");
            }
            Self::Path(why) => return why.fmt(f),
            Self::Failed(error) => return error.fmt(f),
            Self::Misses { assumption, how } => {
                return write!(
                    f,
                    "its loads do not all hit the first cache ({}): {how}",
                    assumption.word()
                );
            }
            Self::Unstable(tried, why) => {
                let why = why.as_deref().unwrap_or("no result");
                return write!(f, "too few of {tried} measurements are stable: {why}");
            }
            Self::Both(why, again) => {
                return write!(f, "{why}; with its loads from one address: {again}");
            }
            Self::NoCode => "its code is not known",
            Self::NoLoop => "no loop of its function contains it",
            Self::Leaves => "its most frequent path leaves the loop",
            Self::Nested => "the loop has another one in it",
        })
    }
}
