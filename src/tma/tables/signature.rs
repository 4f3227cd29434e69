//! The section `[signature]` of a table file: what a core of this kind must show of itself.
//!
//! Family and model are a claim, which a hypervisor makes as it likes; these are what it cannot invent.
//! docs/method/identification.md says how they are weighed.

use crate::Cache;
use crate::cpuid::{CacheLevel, Feature};
use serde::{Deserialize, Serialize};

/// CPUID signature of a core. Absent parts are not weighed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// Features that every such core has, unless they are hidden.
    #[serde(default)]
    pub has: Vec<Feature>,
    /// Features that no such core has.
    #[serde(default)]
    pub never: Vec<Feature>,
    /// Shapes of its first-level data cache.
    #[serde(default)]
    pub l1_data: Vec<Cache>,
    /// Shapes of its first-level instruction cache.
    #[serde(default)]
    pub l1_code: Vec<Cache>,
    /// Shapes of its second-level cache.
    #[serde(default)]
    pub l2: Vec<Cache>,
    /// The highest basic leaf of CPUID.
    #[serde(default)]
    pub highest_leaf: Option<u32>,
    /// Kind of core in leaf 1A, where it says one: 0x20 for Atom, 0x40 for Core.
    #[serde(default)]
    pub core_type: Option<u32>,
    /// Native model in leaf 1A.
    #[serde(default)]
    pub native_model: Option<u32>,
    /// Sources of all that.
    pub source: Vec<String>,
}

impl Signature {
    /// The shapes that a cache may have; empty where they are not stated.
    pub fn shapes(&self, level: CacheLevel) -> &[Cache] {
        match level {
            CacheLevel::L1Data => &self.l1_data,
            CacheLevel::L1Code => &self.l1_code,
            CacheLevel::L2 => &self.l2,
        }
    }
}
