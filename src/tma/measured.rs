//! Facts of a core that were measured on it, each known with its error or open with its reason.
//!
//! `workload::core_facts` measures them, `docs/method/core-facts.md` says how. Unlike those of a table they need no
//! document of the vendor, and hold for this machine only.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A measurable property of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Unfused single-µop instructions a cycle.
    Width,
    /// Loads a cycle.
    Loads,
    /// Stores a cycle.
    Stores,
    /// Bytes of the first-level data cache.
    L1Size,
    /// Bytes of the second cache.
    L2Size,
    /// Bytes of the third cache, as far as this processor gets to use it.
    L3Size,
    /// Cycles of a load that hits the first cache.
    L1Latency,
    /// Cycles of a load from the second cache.
    L2Latency,
    /// Cycles of a load from the third cache.
    L3Latency,
    /// Cycles of a load from memory.
    MemoryLatency,
    /// Cycles of a misprediction of a branch.
    Misprediction,
    /// Cycles from a store's value through memory to the load after it.
    Forwarding,
    /// Instructions that a loop may have before it runs slower for its length alone: those the op cache holds.
    OpCache,
    /// Instructions a cycle of longer code.
    Decoded,
    /// Entries of the reorder buffer.
    ReorderBuffer,
}

impl Kind {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 15] = [
        Self::Width,
        Self::Loads,
        Self::Stores,
        Self::L1Size,
        Self::L1Latency,
        Self::L2Size,
        Self::L2Latency,
        Self::L3Size,
        Self::L3Latency,
        Self::MemoryLatency,
        Self::Forwarding,
        Self::Misprediction,
        Self::OpCache,
        Self::Decoded,
        Self::ReorderBuffer,
    ];

    /// As reports name it, and its unit.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Width => ("issue width", "instructions a cycle"),
            Self::Loads => ("loads", "a cycle"),
            Self::Stores => ("stores", "a cycle"),
            Self::L1Size => ("L1 data cache", "bytes"),
            Self::L2Size => ("L2 cache", "bytes"),
            Self::L3Size => ("L3 cache", "bytes"),
            Self::L1Latency => ("L1 latency", "cycles"),
            Self::L2Latency => ("L2 latency", "cycles"),
            Self::L3Latency => ("L3 latency", "cycles"),
            Self::MemoryLatency => ("memory latency", "cycles"),
            Self::Misprediction => ("misprediction", "cycles"),
            Self::Forwarding => ("store forwarding", "cycles"),
            Self::OpCache => ("op cache", "instructions"),
            Self::Decoded => ("beyond the op cache", "instructions a cycle"),
            Self::ReorderBuffer => ("reorder buffer", "instructions"),
        }
    }
}

/// A number with its error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// In the unit of its kind.
    pub value: f64,
    /// How far the truth may be off, either way, in the same unit.
    pub error: f64,
    /// How it was measured.
    pub how: String,
}

/// Why a fact is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Open {
    /// It was not asked for.
    NotMeasured,
    /// Repetitions contradict each other: other work on the core, or a clock that changed.
    Disagree {
        /// The least of them.
        least: f64,
        /// The most of them.
        most: f64,
    },
    /// The times do not change where they would at its limit, up to this size.
    NoStep {
        /// The largest size tested.
        up_to: f64,
    },
    /// Memory is in small pages: address translation cannot be separated from caches.
    SmallPages,
    /// Too little memory is free.
    NoMemory,
    /// The cache before it is the last one.
    NoSuchCache,
    /// Generated code cannot be run.
    NoCode,
    /// The self-test left it open.
    SelfTest,
}

impl std::fmt::Display for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotMeasured => f.write_str("not measured"),
            Self::Disagree { least, most } => {
                write!(
                    f,
                    "repetitions differ, {least:.4} to {most:.4}: the core was shared, or its clock changed"
                )
            }
            Self::NoStep { up_to } => write!(f, "no step up to {up_to}"),
            Self::SmallPages => {
                f.write_str("memory is in small pages: address translation hides it")
            }
            Self::NoMemory => f.write_str("too little memory is free"),
            Self::NoSuchCache => f.write_str("no such cache shows"),
            Self::NoCode => f.write_str("the system does not run generated code"),
            Self::SelfTest => f.write_str("the self-test left it open"),
        }
    }
}

/// A fact: known, or open with its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// Measured.
    Known(Known),
    /// Not.
    Open {
        /// Why.
        open: Open,
    },
}

impl Fact {
    /// An open one.
    pub fn open(open: Open) -> Self {
        Self::Open { open }
    }
}

/// The facts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts(pub BTreeMap<Kind, Fact>);

impl Facts {
    /// A known fact.
    pub fn known(&self, kind: Kind) -> Option<&Known> {
        match self.0.get(&kind) {
            Some(Fact::Known(known)) => Some(known),
            _ => None,
        }
    }

    /// A fact; one that was never asked for is open.
    pub fn get(&self, kind: Kind) -> Fact {
        self.0.get(&kind).cloned().unwrap_or(Fact::open(Open::NotMeasured))
    }
}

/// The measured facts of a core, shared by all copies of its description.
#[derive(Debug, Default)]
pub struct Measured(OnceLock<Facts>);

impl Measured {
    /// The facts, if they were measured, now or earlier.
    pub fn facts(&self) -> Option<&Facts> {
        self.0.get()
    }

    /// Takes them over; the first ones stay.
    pub fn set(&self, facts: Facts) {
        let _ = self.0.set(facts);
    }
}

/// Where a fact that a result used comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The event table.
    Table,
    /// Measured on this processor.
    Measured,
    /// Not used, or assumed where the result says so.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_back_as_written_and_open_ones_keep_their_reason() {
        let known = Known { value: 256.0, error: 4.0, how: "two loads".to_owned() };
        let facts = Facts(BTreeMap::from([
            (Kind::ReorderBuffer, Fact::Known(known.clone())),
            (Kind::OpCache, Fact::open(Open::NoStep { up_to: 8192.0 })),
            (Kind::L3Size, Fact::open(Open::SmallPages)),
        ]));
        let text = serde_json::to_string(&facts).unwrap();
        let read: Facts = serde_json::from_str(&text).unwrap();
        assert_eq!(read, facts);
        assert_eq!(read.known(Kind::ReorderBuffer), Some(&known));
        assert_eq!(read.known(Kind::OpCache), None);
        assert_eq!(read.get(Kind::Width), Fact::open(Open::NotMeasured));
        assert_eq!(Kind::ALL.iter().collect::<std::collections::BTreeSet<_>>().len(), 15);
    }
}
