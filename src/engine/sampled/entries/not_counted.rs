//! Why a block has no entries.

use probe::count::Uncounted;
use profile::hot::Unavailable;
use std::fmt;
use tma::Error;

/// Why a block has no entries.
#[derive(Debug, Clone)]
pub(super) enum NotCounted {
    /// Its code is in no file that can be read.
    NoFile(Unavailable),
    /// It is in no function.
    NoFunction,
    /// The run or the window failed.
    Run(Error),
    /// The run was over before any probe was set.
    Unplanned(Uncounted),
    /// It has no probe, and none around it tell.
    Probes(Uncounted),
    /// The run ended otherwise than the sampled one.
    OtherEnd(&'static str),
    /// Its file has no block there.
    NoBlock,
    /// Nothing came to it in the window.
    NotEntered,
}

impl fmt::Display for NotCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Unplanned(why) = self {
            return why.fmt(f);
        }
        f.write_str("not counted: ")?;
        f.write_str(match self {
            Self::NoFile(why) => return why.fmt(f),
            Self::Run(error) => return error.fmt(f),
            Self::Unplanned(why) | Self::Probes(why) => return why.fmt(f),
            Self::OtherEnd(why) => why,
            Self::NoFunction => "it has no function",
            Self::NoBlock => "no block begins at its address in the file",
            Self::NotEntered => "it was not entered in the window",
        })
    }
}
