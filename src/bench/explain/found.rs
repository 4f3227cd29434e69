//! Everything that was found out about a block.

use super::model::Evidence;
use crate::measurement::Bound;
use isa::deps::{Analysis, Code};

/// Everything that was found out.
pub struct Found {
    /// For the verdict.
    pub evidence: Evidence,
    /// The bounds that were found here.
    pub bounds: Vec<Bound>,
    /// Dependencies and recurrences of the block as it was measured.
    pub analysis: Analysis,
    /// Its instructions.
    pub code: Code,
    /// Which form's time is explained.
    pub form: &'static str,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
}

#[cfg(test)]
impl Found {
    /// Of a block that nothing was measured of.
    pub fn without_evidence(analysis: Analysis, code: Code) -> Self {
        Self {
            evidence: Evidence::default(),
            bounds: Vec::new(),
            analysis,
            code,
            form: "unrolled",
            missing: Vec::new(),
        }
    }
}
