//! How far a processor looks ahead.

use tma::Core;

/// Entries of a reorder buffer, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Entries; µops, of which an instruction has one at least.
    pub entries: u32,
    /// Who says so.
    pub source: String,
}

/// Entries of the largest usual reorder buffer (Golden Cove): no dependency is missed.
const LARGEST: u32 = 512;

impl Window {
    /// That of `core`; where it is not known, the largest usual one, and that is its source.
    pub fn of(core: &Core) -> Self {
        match core.reorder_buffer() {
            Some(known) => Self { entries: known.entries, source: known.source },
            None => Self {
                entries: LARGEST,
                source: "the largest usual core (Golden Cove), as the processor's is not known"
                    .into(),
            },
        }
    }
}
