//! The shape of a cache.

use serde::{Deserialize, Serialize};

/// Shape of a cache with lines of 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Lines of a set.
    pub ways: usize,
    /// Sets.
    pub sets: usize,
}

impl Cache {
    /// Its size in bytes.
    pub fn bytes(self) -> usize {
        64 * self.ways * self.sets
    }
}
