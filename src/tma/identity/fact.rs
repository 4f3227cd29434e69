//! Facts that a processor shows for or against a table.

use crate::Cache;
use crate::cpuid::{CacheLevel, CoreType, Feature, Group};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use std::fmt;

/// A rate that the self-test measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Instructions a cycle.
    Width,
    /// Additions of a constant to one register, a cycle: more than one are eliminated.
    ConstantAdds,
    /// Moves between registers on one chain, a cycle: more than one are eliminated.
    Moves,
}

/// One observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact {
    /// Family, model and stepping are the table's.
    Model,
    /// A feature is there.
    Has(Feature),
    /// A feature is not there.
    Lacks(Feature),
    /// All features of a group are switched off.
    Without(Group),
    /// The shape of a cache.
    Cache(CacheLevel, Cache),
    /// The highest basic leaf.
    HighestLeaf(u32),
    /// Kind and native model of the core.
    Core(CoreType),
    /// A rate that the self-test measured, a cycle.
    Measured(Rate, f64),
}

impl Fact {
    /// Its kind, for scripts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Has(_) => "feature",
            Self::Lacks(_) | Self::Without(_) => "missing",
            Self::Cache(..) => "cache",
            Self::HighestLeaf(_) => "highest_leaf",
            Self::Core(_) => "core_type",
            Self::Measured(..) => "measured",
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => f.write_str("family and model"),
            Self::Has(feature) => write!(f, "{} (leaf {})", feature.name(), feature.place()),
            Self::Lacks(feature) => write!(f, "no {} (leaf {})", feature.name(), feature.place()),
            Self::Without(Group::Avx512) => f.write_str("no AVX-512 at all"),
            Self::Without(Group::Amx) => f.write_str("no AMX at all"),
            Self::Without(_) => f.write_str("no AVX at all"),
            Self::Cache(level, shape) => {
                let (size, ways) = (shape.bytes() / 1024, shape.ways);
                write!(f, "{} {size} KiB, {ways}-way", level.name())
            }
            Self::HighestLeaf(leaf) => write!(f, "highest leaf {leaf:x}"),
            Self::Core(core) => {
                let kind = match core.kind {
                    0x20 => "Atom",
                    0x40 => "Core",
                    _ => "unknown kind",
                };
                write!(f, "{kind}, native model {} (leaf 1a)", core.native)
            }
            Self::Measured(rate, value) => {
                let what = match rate {
                    Rate::Width => "instructions",
                    Rate::ConstantAdds => "dependent additions of a constant",
                    Rate::Moves => "dependent moves",
                };
                write!(f, "{value:.1} {what} a cycle")
            }
        }
    }
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fact = serializer.serialize_struct("Fact", 2)?;
        fact.serialize_field("kind", self.kind())?;
        fact.serialize_field("text", &self.to_string())?;
        fact.end()
    }
}
