//! Prefetches that were put into the source and measured, a part of `tdtool.prefetch/1`.

use super::diff::paired::Paired;
use loads::prefetch::Site;
use serde::{Deserialize, Serialize};
use tma::Address;

/// A prefetch in the source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AppliedRow {
    /// The load.
    pub load: Address,
    /// Its function.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// Line of the load.
    pub line: Option<u32>,
    /// The loop that the prefetch was put into.
    pub site: Option<Site>,
    /// How often the compiler unrolled that loop, if more than once: distances here are of the source's iterations, the
    /// advice's of the unrolled ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrolled: Option<u64>,
    /// The statement, with the best distance, else the first that was tried.
    pub statement: Option<String>,
    /// The distances, in the order in which they were measured.
    pub tried: Vec<TriedRow>,
    /// The best of them in runs of its own.
    pub confirmed: Option<TriedRow>,
    /// Whether the source has it now, or the patch.
    pub kept: bool,
    /// Why it is not kept.
    pub reason: Option<String>,
}

/// A distance, by runs with and without the prefetch in turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TriedRow {
    /// Iterations ahead.
    pub distance: u64,
    /// Runs of each.
    pub runs: u32,
    /// Processor time with the prefetch, as a multiple of that without.
    pub time: Option<Paired>,
    /// Words of the output that differ from run to run: they were not compared.
    pub words_not_compared: u64,
    /// Why it was not measured, or does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl TriedRow {
    /// The share of the time that it saves, if it does for certain.
    pub fn gain(&self) -> Option<f64> {
        let time = self.time.filter(|time| time.is_clear() && time.ratio < 1.0)?;
        self.failed.is_none().then_some(1.0 - time.ratio)
    }
}
