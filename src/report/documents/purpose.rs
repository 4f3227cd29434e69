//! What runs of a command were for.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What a run of the command, or a window of a process, was for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Samples, by which hot functions are chosen.
    Samples,
    /// Counts of blocks.
    #[default]
    Counts,
    /// Outcomes of branches.
    Branches,
    /// What registers hold.
    Values,
    /// Addresses of loads.
    Addresses,
    /// Latencies of loads.
    Latencies,
    /// So many runs that ended where a loop was entered, for the values there.
    EndedForValues(usize),
}

const NAMED: [Purpose; 6] = [
    Purpose::Samples,
    Purpose::Counts,
    Purpose::Branches,
    Purpose::Values,
    Purpose::Addresses,
    Purpose::Latencies,
];

/// As in documents.
impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Samples => "samples",
            Self::Counts => "counts",
            Self::Branches => "branches",
            Self::Values => "values",
            Self::Addresses => "addresses of loads",
            Self::Latencies => "latencies of loads",
            Self::EndedForValues(runs) => return write!(f, "{runs} for values"),
        })
    }
}

impl Serialize for Purpose {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Purpose {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let ended = || text.strip_suffix(" for values")?.parse().ok().map(Self::EndedForValues);
        let named = NAMED.into_iter().find(|one| one.to_string() == text);
        let found = named.or_else(ended);
        found.ok_or_else(|| D::Error::custom(format!("no run is for `{text}`")))
    }
}
