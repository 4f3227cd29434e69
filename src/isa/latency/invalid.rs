//! Mistakes in files of latencies.

use std::fmt;
use tma::Cause;

/// A mistake in a shipped table or a calibration.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Invalid {
    /// It cannot be parsed.
    Toml(Cause<toml::de::Error>),
    /// Its schema, and the one that is known.
    Schema(u32, u32),
    /// A source that it does not name.
    Source(String),
    /// More entries than can be numbered.
    ManyEntries,
    /// A word of a kind (`form`, `input`) that has no such word.
    Unknown(&'static str, String),
    /// A latency and its spread, of which one is no time.
    Value(f64, f64),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Toml(error) => error.fmt(f),
            Self::Schema(n, known) => write!(f, "schema {n} is not supported; expected {known}"),
            Self::Source(key) => write!(f, "the source {key} is not listed in [sources]"),
            Self::ManyEntries => f.write_str("too many entries"),
            Self::Unknown(kind, word) => write!(f, "unknown {kind} {word}"),
            Self::Value(cycles, spread) => write!(f, "{cycles} ± {spread} is not a valid latency"),
        }
    }
}

impl From<toml::de::Error> for Invalid {
    fn from(error: toml::de::Error) -> Self {
        Self::Toml(error.into())
    }
}
