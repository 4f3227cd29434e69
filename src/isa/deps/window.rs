//! The size of the reorder buffer.

use tma::Core;

/// The size of a reorder buffer, with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Entries (µops); an instruction takes at least one.
    pub entries: u32,
    /// Where the size comes from.
    pub source: String,
}

/// Entries assumed for unknown cores: those of a large core (Golden Cove), so that no dependency is
/// missed.
const DEFAULT_ENTRIES: u32 = 512;

impl Window {
    /// The reorder buffer of `core`, or a large default if it is not known.
    pub fn of(core: &Core) -> Self {
        match core.reorder_buffer() {
            Some(known) => Self { entries: known.entries, source: known.source },
            None => Self {
                entries: DEFAULT_ENTRIES,
                source: "default (Golden Cove), as this processor's is not known".into(),
            },
        }
    }
}
