//! A measured block with what tables predict for it: `tdtool.block/2` with `predictions`.

use super::prediction::Prediction;
use bench::Measurement;
use serde::Serialize;

/// The measurement, and beside it predictions, which never enter it.
#[derive(Debug, Clone, Serialize)]
pub struct BlockReport {
    /// The measurement.
    #[serde(flatten)]
    pub measurement: Measurement,
    /// One for the measured core, if it has a table of ports, and one for each core asked for.
    pub predictions: Vec<Prediction>,
}
