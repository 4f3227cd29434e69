//! Measured blocks: one with what tables predict for it (`tdtool.block/2` with `predictions`), two compared
//! (`tdtool.block-pair/1`), many as the judge of a cost model (`tdtool.model-errors/1`). Also the functions of a
//! program to choose from, `tdtool.functions/1`.

use bench::Measurement;
use serde::Serialize;
use tma::Address;

/// The measurement, and beside it predictions, which never enter it.
#[derive(Debug, Clone, Serialize)]
pub struct BlockReport {
    /// The measurement.
    #[serde(flatten)]
    pub measurement: Measurement,
    /// One for the measured core, if it has a table of ports, and one for each core asked for.
    pub predictions: Vec<Prediction>,
}

/// The schema's name and version.
pub const PAIR_SCHEMA: &str = "tdtool.block-pair/1";

/// Two blocks and the difference of their times.
#[derive(Debug, Clone, Serialize)]
pub struct BlockPair {
    /// [`PAIR_SCHEMA`].
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

/// Which lower bound is the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredictedBound {
    /// Slots of the issue width.
    IssueWidth,
    /// Ports.
    Ports,
    /// A loop-carried dependency.
    Recurrence,
}

shown_as_written!(PredictedBound);

/// A prediction of published tables: the largest of three lower bounds. Nothing in it is measured.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// Always `predicted`.
    pub kind: &'static str,
    /// Name of the core's event table.
    pub uarch: String,
    /// Its title.
    pub title: String,
    /// Whether it is the core that was measured.
    pub measured_core: bool,
    /// Core cycles per iteration, at least: the largest part. `None`: no part is known.
    pub cycles: Option<f64>,
    /// The largest part.
    pub bound: Option<PredictedBound>,
    /// Issue slots over the width.
    pub issue_width: Option<IssueWidth>,
    /// The ports.
    pub ports: Option<Pressure>,
    /// The slowest loop-carried dependency.
    pub recurrence: Option<CarriedLatency>,
    /// Instructions whose form the table of ports lacks; the bounds do not include them.
    pub unknown: Vec<String>,
    /// Why parts are missing.
    pub missing: Vec<String>,
}

/// The bound of the issue width.
#[derive(Debug, Clone, Serialize)]
pub struct IssueWidth {
    /// Core cycles per iteration.
    pub cycles: f64,
    /// Issue slots per iteration.
    pub slots: f64,
    /// Slots a cycle.
    pub width: u32,
}

/// The bound of loop-carried latency.
#[derive(Debug, Clone, Serialize)]
pub struct CarriedLatency {
    /// Core cycles per iteration, with the lowest latencies.
    pub cycles: f64,
    /// With the highest.
    pub high: f64,
    /// Its instructions.
    pub path: Vec<String>,
    /// Whether any latency in it is assumed, because no table has it.
    pub assumed: bool,
}

/// The ports' bound, and the load of each instruction on each port.
#[derive(Debug, Clone, Serialize)]
pub struct Pressure {
    /// Core cycles per iteration of the busiest port: no assignment needs fewer.
    pub cycles: f64,
    /// Names of the ports: the columns.
    pub names: Vec<String>,
    /// One row for each instruction.
    pub instructions: Vec<PortRow>,
    /// Sum of each column.
    pub total: Vec<f64>,
    /// Sources of its µops.
    pub sources: Vec<String>,
}

/// An instruction's load on each port.
#[derive(Debug, Clone, Serialize)]
pub struct PortRow {
    /// Intel syntax.
    pub text: String,
    /// Issue slots; `None`: not known.
    pub slots: Option<f64>,
    /// Its µops by the ports that they can use; `None`: not known.
    pub uops: Option<String>,
    /// Why it has no µop of its own: `zero idiom`, `eliminated at renaming`, `fused with the branch`.
    pub without: Option<&'static str>,
    /// Source of the µops.
    pub source: Option<String>,
    /// Average cycles per iteration on each port; empty where its µops are not known.
    pub cycles: Vec<f64>,
}

/// The schema's name and version.
pub const ERRORS_SCHEMA: &str = "tdtool.model-errors/1";

/// How far a model's predictions are from measurements.
#[derive(Debug, Clone, Serialize)]
pub struct ModelErrors {
    /// [`ERRORS_SCHEMA`].
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

/// The largest functions of a file: the document `tdtool.functions/1`.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionList {
    /// `tdtool.functions/1`.
    pub schema: &'static str,
    /// The file.
    pub file: String,
    /// How many functions it has.
    pub count: usize,
    /// The largest of them, by size.
    pub functions: Vec<FunctionLine>,
}

/// A function.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionLine {
    /// Its name, demangled; none where the file has no symbol for it.
    pub name: Option<String>,
    /// Its name in the symbol table.
    pub symbol: Option<String>,
    /// Its address (p_vaddr).
    pub start: Address,
    /// Its size in bytes.
    pub bytes: u64,
}
