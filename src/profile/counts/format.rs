//! The formats of recorded counts.

use std::fmt;

/// The inputs that are read, as a hint after an error.
pub const FORMATS: &str = "to measure a program: `tdtool report -- ./PROGRAM`; a recording is a \
     session of `tdtool record`, perf.data, or the output of `perf stat -x,`, `perf stat -j`, \
     `perf stat record`, `toplev --valcsv`, or CSV lines `event,value`";

/// Format of a file, recognised by content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// `perf stat -x SEP`.
    PerfCsv {
        /// The separator.
        separator: String,
    },
    /// `perf stat -j`: one JSON object per line.
    PerfJson,
    /// `perf stat record`.
    PerfStatRecord,
    /// toplev's `--valcsv`.
    Toplev,
    /// `event,value` or `trial,event,value`.
    Plain {
        /// The separator.
        separator: char,
    },
    /// A session of `tdtool record`.
    Session,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::PerfCsv { separator } => {
                write!(f, "perf stat -x{}", separator.escape_default())
            }
            Format::PerfJson => f.write_str("perf stat -j"),
            Format::PerfStatRecord => f.write_str("perf stat record"),
            Format::Toplev => f.write_str("toplev --valcsv"),
            Format::Plain { .. } => f.write_str("event,value CSV"),
            Format::Session => f.write_str("tdtool session"),
        }
    }
}
