//! Levels that served the accesses of samples.

use serde::{Deserialize, Serialize};

/// Samples by what served the access; those without a level are in none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelsRow {
    /// A line that was on its way (line fill buffer): a late hit.
    pub lfb: u64,
    /// L1 cache.
    pub l1: u64,
    /// L2 cache.
    pub l2: u64,
    /// L3 cache.
    pub l3: u64,
    /// Memory of the own node.
    pub ram: u64,
    /// Memory of another node.
    pub remote_ram: u64,
    /// A cache of another core complex or node.
    pub remote_cache: u64,
    /// Something else, or not known to the hardware.
    pub other: u64,
}
