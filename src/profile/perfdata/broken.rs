//! Why a file cannot be read, from an offset on or as a whole.

use ruzstd::decoding::errors::FrameDecoderError;
use std::{fmt, io};
use tma::Cause;

/// Why records cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// The disk fails.
    Disk(Cause<io::Error>),
    /// The file ends this many bytes after the start of a record.
    Incomplete(u64),
    /// A record claims fewer bytes than its header has.
    Small(usize),
    /// A record is cut off: its bytes, and those that are there.
    Cut(u64, u64),
    /// A compressed record has less data than it claims.
    Claims,
    /// A record among compressed ones claims fewer bytes than its header has.
    SmallInside(usize),
    /// Compressed bytes expand beyond the limit: their number, and the limit in MiB.
    Bytes(u64, u64),
    /// Compressed bytes expand to too many records: their number, and the limit in records.
    Records(u64, u64),
    /// The compressed data end within a record.
    Ends,
    /// The decoder of compressed data fails.
    Decoder(Cause<FrameDecoderError>),
    /// The output of the decoder cannot be read.
    Output(Cause<io::Error>),
    /// It panicked.
    Stopped,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => write!(f, "it cannot be read: {error}"),
            Self::Incomplete(left) => write!(f, "{left} bytes are an incomplete record"),
            Self::Small(size) => {
                write!(f, "a record claims a size of {size} bytes, less than its header")
            }
            Self::Cut(claimed, left) => {
                write!(f, "a record of {claimed} bytes is cut off after {left}")
            }
            Self::Claims => f.write_str("a compressed record claims more data than it has"),
            Self::SmallInside(size) => {
                write!(f, "a compressed record claims a size of {size} bytes")
            }
            Self::Bytes(taken, given) => {
                write!(f, "{taken} compressed bytes expand to more than {given} MiB")
            }
            Self::Records(taken, count) => {
                write!(f, "{taken} compressed bytes expand to more than {count} records")
            }
            Self::Ends => f.write_str("the compressed records end inside a record"),
            Self::Decoder(error) => write!(f, "compressed data are damaged: {error}"),
            Self::Output(error) => error.fmt(f),
            Self::Stopped => f.write_str("compressed data are damaged: the decoder stopped"),
        }
    }
}

impl From<FrameDecoderError> for Broken {
    fn from(error: FrameDecoderError) -> Self {
        Self::Decoder(error.into())
    }
}

/// Why the start of a file is no header that can be read.
#[derive(Debug)]
pub enum NoHeader {
    /// The disk fails.
    Disk(io::Error),
    /// It was recorded on a big-endian machine.
    BigEndian,
    /// It has the format of perf before 2012.
    Old,
    /// It begins otherwise.
    Other,
    /// It is cut off or damaged.
    Cut,
}

impl fmt::Display for NoHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk(error) => return error.fmt(f),
            Self::BigEndian => "it was recorded on a big-endian machine",
            Self::Old => "its format is that of perf before 2012",
            Self::Other => "it does not begin as a perf.data file does",
            Self::Cut => "its header is cut off or damaged",
        })
    }
}

impl From<io::Error> for NoHeader {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}
