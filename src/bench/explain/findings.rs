//! The findings on a block.

use super::model::Evidence;
use crate::measurement::Bound;
use isa::deps::{Analysis, Code};

/// The findings, for the verdict and the document.
pub struct Findings {
    /// Input of the verdict.
    pub evidence: Evidence,
    /// Bounds measured or computed by the explanation.
    pub bounds: Vec<Bound>,
    /// Dependencies of the block as it was measured.
    pub analysis: Analysis,
    /// Its instructions.
    pub code: Code,
    /// The form whose time is explained.
    pub form: &'static str,
    /// Failed measurements, and why.
    pub missing: Vec<String>,
}

impl Findings {
    /// Drops evidence of copies on memory dependencies that the loop does not have.
    pub(super) fn drop_copies_that_are_not_the_loop(&mut self, forwards: Option<bool>) {
        if self.evidence.copies_are_not_the_loop(forwards) {
            (self.evidence.memory_broken, self.evidence.memory_control) = (None, None);
            let why = "straight copies wait for stores, the loop does not";
            self.missing.push(format!("memory dependencies broken: {why}"));
        }
    }
}

#[cfg(test)]
impl Findings {
    /// Findings without any measurement.
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
