//! Dependencies of a block: through registers, flags and memory, and the bound that its
//! recurrences put on it.
//!
//! | file | concern |
//! |---|---|
//! | `latency` | how long a value takes from an operand to a result, and who says so |

pub mod latency;

/// What carries a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A general-purpose, vector, mask or x87 register.
    Register,
    /// A group of flags.
    Flag,
    /// Memory.
    Memory,
}

/// How a load overlaps the store whose bytes it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// The load lies within one store: forwarded.
    Full,
    /// Only some of the load's bytes were stored; the rest is in the cache.
    Partial,
    /// Several stores, or a store too narrow for it: the load waits until they are in the cache.
    Blocked,
}

/// A true dependency (read after write) between two instructions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dependency {
    /// Index of the instruction that writes.
    pub writer: usize,
    /// Index of the one that reads.
    pub reader: usize,
    /// How many iterations later it reads; 0 within one.
    pub delta: u32,
    /// What carries it.
    pub kind: Kind,
    /// The register, the group of flags, or the memory operand as written in the reader.
    pub through: String,
    /// For memory, how the two overlap.
    pub overlap: Option<Overlap>,
}
