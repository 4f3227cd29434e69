//! Replaces measurer and self-test on other architectures, where blocks cannot be measured.
//!
//! Tests on x86-64 compile it too, so that it keeps up with the document.

use super::Options;
use crate::measurement::{Code, Hierarchy, Measurement, Status};
use isa::code::Block;
use std::path::Path;
use tma::{Error, Result};

const WHERE: &str = "not possible here: blocks are measured on x86-64 only";

/// Measures nothing on this architecture.
pub struct BlockMeasurer {
    core: std::sync::Arc<tma::Core>,
}

impl BlockMeasurer {
    /// A measurer that will refuse.
    pub fn new(options: Options) -> Self {
        Self { core: options.core }
    }

    /// The core that would be measured on.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "only batches ask"))]
    pub fn core(&self) -> &tma::Core {
        &self.core
    }

    /// No effect.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "only batches call it"))]
    pub fn set_budget(&mut self, _: std::time::Duration) {}

    /// No test.
    ///
    /// # Errors
    /// None.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "only models of branches ask"))]
    pub fn self_test(&mut self) -> Result<()> {
        Ok(())
    }

    /// No layers: no block runs.
    ///
    /// # Errors
    /// None.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "only the doctor asks"))]
    pub fn layers(&mut self) -> Result<crate::Layers> {
        Ok(crate::Layers::default())
    }

    /// No effect.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "only batches call it"))]
    pub fn set_end(&mut self, _: Option<std::time::Instant>) {}

    /// No effect.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "nobody looks on"))]
    pub fn set_progress(&mut self, _: super::Progress) {}

    /// No effect.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "only microbenchmarks call it"))]
    pub fn set_values(&mut self, _: super::Values) {}

    /// No effect.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "only batches call it"))]
    pub fn pin_to_worker_cpu(&mut self) {}

    /// Unknown.
    ///
    /// # Errors
    /// None.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "only reports call it"))]
    pub fn cycles_per_tick(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn measure(&mut self, _: &Block) -> Result<Measurement> {
        Err(Error::not_possible(WHERE)
            .because("a block's instructions are run as they are")
            .hint("run tdtool on an x86-64 machine"))
    }
}

/// The report of something that is no block at all.
pub fn rejected(input: &str, reason: String, _: &tma::Core) -> Measurement {
    let block = Code { name: None, hex: input.to_owned(), instructions: Vec::new() };
    let hierarchy = Hierarchy::not_measured(WHERE, &[]);
    Measurement {
        status: Status::Rejected,
        reason: Some(reason),
        ..Measurement::blank(block, hierarchy)
    }
}

/// No effect.
///
/// # Errors
/// None.
#[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "only the doctor asks"))]
pub fn check_self_test(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma::ErrorKind;

    #[test]
    fn it_says_where_blocks_can_be_measured() {
        let block = Block::decode(&[0x90]).unwrap();
        let error = BlockMeasurer::new(Options::default()).measure(&block).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotPossible);
        assert!(error.what().contains("x86-64 only"));
        assert_eq!(rejected("zz", "no hex".into(), &tma::Core::default()).status, Status::Rejected);
    }
}
