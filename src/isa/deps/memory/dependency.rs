//! Memory dependencies as data.

use super::alias::AliasClass;

/// A true dependency through memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryDependency {
    /// Index of the storing instruction.
    pub writer: usize,
    /// Index of the loading instruction.
    pub reader: usize,
    /// Index of the load in the reader's accesses.
    pub access: usize,
    /// Iterations from the store to the load.
    pub delta: u32,
    /// Overlap of load and store.
    pub overlap: crate::deps::Overlap,
}

/// The memory dependencies of a region.
#[derive(Debug, Clone, Default)]
pub struct MemoryDependencies {
    /// Dependencies, in order of reader.
    pub dependencies: Vec<MemoryDependency>,
    /// Accesses grouped by the origins of their addresses.
    pub classes: Vec<AliasClass>,
    /// Indices of instructions whose results are unknown.
    pub opaque: Vec<usize>,
    /// Indices of repeated string instructions whose count was known in every execution.
    pub repeated: Vec<usize>,
    /// Iterations per run.
    pub iterations: u32,
}
