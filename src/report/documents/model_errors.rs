//! A cost model judged by measured blocks: `tdtool.model-errors/1`.

use serde::Serialize;

/// The schema's name and version.
pub const SCHEMA: &str = "tdtool.model-errors/1";

/// How far a model's predictions are from measurements.
#[derive(Debug, Clone, Serialize)]
pub struct ModelErrors {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Blocks that are measured `ok`.
    pub measured: usize,
    /// Blocks without a trusted measurement.
    pub not_ok: usize,
    /// Measured blocks that the model has no cycles for: they count in no figure.
    pub not_predicted: usize,
    /// All blocks with both.
    pub overall: Accuracy,
    /// Accuracy by class of block.
    pub classes: Vec<ClassAccuracy>,
    /// The blocks with the largest errors.
    pub worst: Vec<Judged>,
}

/// Accuracy over some blocks. Errors are |predicted - measured| / measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Accuracy {
    /// Blocks with both.
    pub blocks: usize,
    /// Mean error; `None` without blocks.
    pub mean_error: Option<f64>,
    /// Median error.
    pub median_error: Option<f64>,
    /// Share of blocks within 5 %.
    pub within_5: Option<f64>,
    /// Share of blocks within 10 %.
    pub within_10: Option<f64>,
    /// Share of blocks within 25 %.
    pub within_25: Option<f64>,
    /// Share of blocks within 50 %.
    pub within_50: Option<f64>,
    /// Kendall's τ-b of predictions and measurements; `None` if either are all equal.
    pub kendall_tau: Option<f64>,
}

/// The accuracy of a class of blocks.
#[derive(Debug, Clone, Serialize)]
pub struct ClassAccuracy {
    /// `scalar`, `vector`, `scalar and vector`, `loads`, `stores`, `loads and stores`.
    pub class: &'static str,
    /// Its accuracy.
    #[serde(flatten)]
    pub accuracy: Accuracy,
}

/// A block with both numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Its bytes, hexadecimal.
    pub hex: String,
    /// Its class.
    pub class: &'static str,
    /// Measured core cycles per iteration.
    pub measured: f64,
    /// Predicted cycles.
    pub predicted: f64,
    /// |predicted - measured| / measured.
    pub error: f64,
}
