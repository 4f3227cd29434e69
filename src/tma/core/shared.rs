//! What several tables have in common, where nothing decides among them.

use crate::tables::Facts;

/// Entries of a reorder buffer, with their source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReorderBuffer {
    /// Entries: µops, of which an instruction has one at least.
    pub entries: u32,
    /// Source of the number.
    pub source: String,
}

/// What several tables have in common.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shared {
    /// The tables.
    pub tables: Vec<String>,
    /// Facts that they all state alike; the others are not known.
    pub facts: Facts,
    /// Slots a cycle, if they all state the same.
    pub width: Option<u32>,
    /// The reorder buffer, if they all state the same.
    pub reorder_buffer: Option<ReorderBuffer>,
}

impl Shared {
    /// Whether both state the same of the core, wherever they have it from.
    pub(crate) fn states_as(&self, other: &Self) -> bool {
        let entries = |of: &Self| of.reorder_buffer.as_ref().map(|buffer| buffer.entries);
        self.facts.in_common(&other.facts) == self.facts
            && other.facts.in_common(&self.facts) == other.facts
            && self.width == other.width
            && entries(self) == entries(other)
    }
}
