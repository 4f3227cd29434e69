//! Prefetches that were put into the source and measured, a part of `tdtool.prefetch/1`.

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
    /// Mean processor time in milliseconds without it.
    pub without_ms: Option<f64>,
    /// With it.
    pub with_ms: Option<f64>,
    /// Half width of the 95 % interval of their difference.
    pub margin_ms: Option<f64>,
    /// Words of the output that differ from run to run: they were not compared.
    pub words_not_compared: u64,
    /// Why it was not measured, or does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl TriedRow {
    /// Milliseconds that it saves, beyond the error.
    pub fn gain(&self) -> Option<f64> {
        let gain = self.without_ms? - self.with_ms?;
        (self.failed.is_none() && gain > self.margin_ms?).then_some(gain)
    }
}
