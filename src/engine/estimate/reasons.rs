//! Reasons why something is not known of a piece.

use bench::NoPath;
use estimate::Reason;
use std::fmt;
use tma::{Cause, Error};

/// Why the entries of a block are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Uncounted {
    /// No probe was in its function.
    NotProbed,
    /// As the document of the counts or of the evidence says.
    Told(String),
}

/// Why the cost of a piece's loads is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoLoads {
    /// Its loads were left out.
    NotWorth,
    /// Latencies cannot be measured here.
    NoLatencies,
}

/// Why a piece has no time in isolation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Unmeasured {
    /// It is not among the code with this share of the samples.
    Cold(f64),
    /// Its turn has not come yet.
    Waits,
    /// Others took the time that there is.
    NoTime,
    /// A signal came first.
    Interrupted,
    /// None of its blocks was counted.
    NoCounts,
    /// No block that stands for it could be measured.
    NoBlock,
    /// No path through it was measured.
    NoPaths,
    /// A path through it is not one block.
    Path(NoPath),
    /// It cannot be decoded.
    Undecodable(Cause<Error>),
    /// Its measurement has no result, for this reason if one is known.
    NoResult(Option<Reason>),
    /// Neither with made-up values nor, for the second reason, with the program's own.
    Both(Box<Unmeasured>, Box<Uncaptured>),
}

/// Why a piece was not measured with the program's own values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Uncaptured {
    /// It is neither a loop nor a block.
    Several,
    /// It is a loop around others.
    Outer,
    /// Its code is not known as a whole.
    NoBytes,
    /// It cannot run elsewhere, or is no block.
    Code(Reason),
    /// Captures took the time that there is.
    NoTime,
    /// No execution was captured.
    NotReached(Cause<Error>),
    /// It touches this many cache lines.
    Lines(u64),
    /// It touches this many pages.
    Pages(usize),
    /// With its values, too, it has no time.
    Unmeasured(Unmeasured),
}

impl From<NoPath> for Unmeasured {
    fn from(why: NoPath) -> Self {
        Self::Path(why)
    }
}

impl From<Error> for Unmeasured {
    fn from(error: Error) -> Self {
        Self::Undecodable(error.into())
    }
}

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotProbed => "its entries were not counted",
            Self::Told(why) => why,
        })
    }
}

impl fmt::Display for NoLoads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotWorth => "too little is unexplained here, or it would have taken too long",
            Self::NoLatencies => "latencies of loads were not measured",
        })
    }
}

impl fmt::Display for Unmeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cold(share) => {
                let share = 100.0 * share;
                return write!(f, "it is not among the code with {share:.0} % of the samples");
            }
            Self::Path(why) => return why.fmt(f),
            Self::Undecodable(error) => return error.fmt(f),
            Self::NoResult(Some(why)) => return why.fmt(f),
            Self::Both(why, own) => {
                return write!(f, "{why}; with the program's own values: {own}");
            }
            Self::Waits => "not measured in isolation yet",
            Self::NoTime => "the time for that was over",
            Self::Interrupted => "interrupted before it was measured",
            Self::NoCounts => "its blocks have no counts",
            Self::NoBlock => "none of a sample of its blocks could be measured",
            Self::NoPaths => "no path was measured",
            Self::NoResult(None) => "no result",
        })
    }
}

impl fmt::Display for Uncaptured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SURELY: &str = "more than surely stay in any core's first";
        f.write_str(match self {
            Self::Code(why) => return why.fmt(f),
            Self::NotReached(error) => error.cause().unwrap_or(error.what()),
            Self::Lines(lines) => {
                return write!(
                    f,
                    "the captured iterations touch {lines} cache lines, {SURELY} cache"
                );
            }
            Self::Pages(pages) => {
                return write!(f, "the captured iterations touch {pages} pages, {SURELY} TLB");
            }
            Self::Unmeasured(why) => return why.fmt(f),
            Self::Several => "it is not one loop or block",
            Self::Outer => "there are loops within it",
            Self::NoBytes => "its bytes are not known",
            Self::NoTime => "the time for captures was over",
        })
    }
}
