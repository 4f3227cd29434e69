//! The tree and the misses of one block.

use super::counter::{Counter, Effort};
use super::group::Counting;
use super::sample::Runs;
use super::{misses, tree};
use crate::counters::CorePmu;
use crate::measurement::{Hierarchy, Miss};
use tma::Result;

/// The tree and the misses of one block.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Level 1–2.
    pub hierarchy: Hierarchy,
    /// Single events.
    pub misses: Vec<Miss>,
}

/// Counts every group of `core` and every event of the misses, each in runs of its own.
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
