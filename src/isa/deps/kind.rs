//! Kinds of dependencies, and how a load overlaps the store that it depends on.

/// The carrier of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A general-purpose, vector, mask or x87 register.
    Register,
    /// A flag group.
    Flag,
    /// Memory.
    Memory,
}

/// Overlap of a load with the store that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// A single store covers the load: the value is forwarded.
    Full,
    /// A single store covers part of the load; the other bytes come from the cache.
    Partial,
    /// Several stores overlap the load: it waits until they have been written to the cache.
    Blocked,
}
