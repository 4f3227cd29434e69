//! Two blocks measured in one run: `tdtool.block-pair/1`.

use super::block::BlockReport;
use serde::Serialize;

/// The schema's name and version.
pub const SCHEMA: &str = "tdtool.block-pair/1";

/// Two blocks and the difference of their times.
#[derive(Debug, Clone, Serialize)]
pub struct BlockPair {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The first block.
    pub a: BlockReport,
    /// The block of `--against`.
    pub b: BlockReport,
    /// How B differs from A; `None` with the reason where either has no number to trust.
    pub difference: Option<Difference>,
    /// Why there is no difference.
    pub reason: Option<String>,
}

/// B's cycles per iteration less those of A.
#[derive(Debug, Clone, Serialize)]
pub struct Difference {
    /// The median of the pairs.
    pub cycles: f64,
    /// The least of the pairs.
    pub low: f64,
    /// The most of the pairs.
    pub high: f64,
    /// B's median time over A's.
    pub ratio: f64,
    /// Pairs of measurements, one after the other in alternating order.
    pub pairs: usize,
    /// The probability that `low` to `high` covers the median difference.
    pub confidence: f64,
    /// Which one is faster.
    pub faster: Faster,
}

/// Which of two blocks is faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Faster {
    /// The first one.
    A,
    /// The second one.
    B,
    /// The interval of the difference includes 0.
    #[serde(rename = "none")]
    Neither,
}
