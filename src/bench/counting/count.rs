//! Counts one block: its top-down tree and its misses.

use super::counter::{Counter, Effort};
use super::group::Counting;
use super::sample::Runs;
use super::{misses, tree};
use crate::counters::CorePmu;
use crate::measurement::{Hierarchy, Miss};
use tma::Result;

/// Counts of one block.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Level 1–2.
    pub hierarchy: Hierarchy,
    /// Single events.
    pub misses: Vec<Miss>,
}

/// Counts every group of `core` and every miss event, each in separate runs.
///
/// # Errors
/// The sandbox cannot be started.
pub fn count(
    core: &CorePmu,
    runs: &mut dyn Runs,
    counting: &mut dyn Counting,
    effort: Effort,
) -> Result<Counted> {
    let mut counter = Counter { runs, counting, effort };
    let hierarchy = tree::measure(core, &mut counter)?;
    let misses = misses::measure(core, &mut counter)?;
    Ok(Counted { hierarchy, misses })
}
