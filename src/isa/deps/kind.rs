//! What carries a dependency, and how a load overlaps the store that it reads.

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
