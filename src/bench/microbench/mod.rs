//! Microbenchmarks of instructions: throughput of multisets with independent operands, and latencies
//! by dependency chains, both measured in the block measurer's sandbox.
//!
//! | file | concern |
//! |---|---|
//! | `operand` | operands of encodings, and how names of forms write them |
//! | `form` | one instruction form: an iced-x86 `Code`, register or memory, mask; its names |
//! | `catalog` | all forms by name; suggestions; what this processor supports |
//! | `unsupported` | why an encoding has no form or may not be measured; extensions of this processor |
//! | `multiset` | `FORM*COUNT, …`, and the multiset of a block |
//! | `pools`, `generator` | registers and memory, and the code of a microbenchmark |
//! | `measure` | measuring throughput; dependencies left, and their latency bound |
//! | `latency` | dependency chains from operand to result |
//! | `calibrate`, `calibration_set` | measuring the latencies of common forms |
//!
//! This file has the document, `tdtool.microbench/1`. Text and CSV are views of it.

mod calibrate;
mod calibration_set;
mod catalog;
mod form;
mod generator;
mod latency;
mod measure;
mod multiset;
mod operand;
mod pools;
mod unsupported;

pub use calibrate::{CalibrationProgress, CalibrationSummary, calibrate};
pub use catalog::Catalog;
pub use form::{Address, Form, Memory};
pub use generator::{Microbenchmark, Settings};
pub use latency::{Connectors, latencies};
pub use measure::{Bench, Independence, check as independence, measure};
pub use multiset::Multiset;
pub use unsupported::Listed;

use crate::{Assumption, Code, Status};
use serde::Serialize;

/// The schema's name and version.
pub const SCHEMA: &str = "tdtool.microbench/1";

/// A form, and how often it is in the multiset.
#[derive(Debug, Clone, Serialize)]
pub struct FormCount {
    /// Its name.
    pub form: String,
    /// iced-x86's name of its encoding.
    pub code: String,
    /// Its number in the multiset.
    pub count: usize,
}

/// A number of core cycles.
#[derive(Debug, Clone, Serialize)]
pub struct Cycles {
    /// Per multiset.
    pub cycles: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
}

/// A dependency between instructions of a microbenchmark that independent operands do not avoid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// The form that writes.
    pub writer: String,
    /// The form that reads it.
    pub reader: String,
    /// The carrier: `destination`, `implicit rax`, `flags CF`, `memory`, or `register …`, which is an error.
    pub through: String,
    /// Number of registers or memory slots rotated.
    #[serde(rename = "in_turn")]
    pub rotation: usize,
    /// Whether the forms make it unavoidable.
    pub unavoidable: bool,
}

/// A multiset with moves of constants to implicit registers ahead of each instance.
#[derive(Debug, Clone, Serialize)]
pub struct AfterMoves {
    /// The registers, such as `rax`.
    pub registers: Vec<String>,
    /// Per multiset, moves included.
    #[serde(flatten)]
    pub cycles: Cycles,
}

/// The latency bound of these dependencies.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyBound {
    /// Core cycles per multiset with the shortest latencies.
    pub low: f64,
    /// With the longest latencies.
    pub high: f64,
    /// Carriers of the dependencies.
    pub through: Vec<String>,
    /// Sources of the latencies.
    pub sources: Vec<String>,
    /// Whether it explains the measured cycles: they are at most 10 % above it.
    pub binding: bool,
}

/// The document of one multiset.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `throughput`.
    pub what: &'static str,
    /// The multiset.
    pub multiset: Vec<FormCount>,
    /// Its instructions.
    pub instructions: usize,
    /// Copies of the multiset in the code.
    pub sets: usize,
    /// Requested sizes.
    pub settings: Settings,
    /// The code; all of it in `hex`, the first multiset as `instructions`.
    pub code: Code,
    /// Status of the measurement.
    pub status: Status,
    /// The reason, unless `ok`.
    pub reason: Option<String>,
    /// Per multiset, unrolled between fences.
    pub cycles: Option<Cycles>,
    /// Instructions per cycle.
    pub ipc: Option<f64>,
    /// Per multiset, in a loop.
    #[serde(rename = "loop")]
    pub looped: Option<Cycles>,
    /// Why there is no loop measurement.
    pub loop_reason: Option<String>,
    /// Source of the cycles.
    pub clock: Option<&'static str>,
    /// Dependencies that could not be avoided.
    pub dependencies: Vec<Dependency>,
    /// Their latency bound.
    pub bounded_by: Option<LatencyBound>,
    /// Without the dependencies through implicit registers, where those bound it.
    pub after_moves: Option<AfterMoves>,
    /// The assumptions of the measurement.
    pub assumptions: Vec<Assumption>,
}

/// The latency from an operand to a result.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyResult {
    /// `address`, `register`, `flags` or `memory`.
    pub input: &'static str,
    /// Which: `operand 1`, `rax`, `CF`.
    pub from: String,
    /// `register`, `flags` or `memory`.
    pub output: &'static str,
    /// Which.
    pub to: String,
    /// Core cycles, if they could be measured: a whole number within the error.
    pub cycles: Option<f64>,
    /// Lowest, over all operand values, including measurement error and the uncertainty of connectors.
    pub low: Option<f64>,
    /// Highest.
    pub high: Option<f64>,
    /// The shortest latency over several operand values; `cycles` is the longest.
    pub least: Option<f64>,
    /// The latency after another instruction of the same form, where that is shorter.
    pub chained: Option<f64>,
    /// Cycles of each link in a chain of this form alone. Not its latency where the latency after another
    /// instruction is another one (`cycles`), nor where it is no whole number.
    pub link: Option<f64>,
    /// Where only a round trip between register files can be measured: its cycles, moves included.
    pub round_trip: Option<f64>,
    /// The form's part of it if each move takes half of `movq` (`kmovq`) there and back: in a dependency cycle,
    /// which comes back, the sum of such shares is exact.
    pub share: Option<f64>,
    /// The dependency chain, and what was subtracted.
    pub chain: String,
    /// Status of the measurement.
    pub status: Status,
    /// Why there is no number, or why it is not trusted.
    pub reason: Option<String>,
}

/// The document of a form's latencies.
#[derive(Debug, Clone, Serialize)]
pub struct Latencies {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `latency`.
    pub what: &'static str,
    /// The form.
    pub form: String,
    /// iced-x86's name of its encoding.
    pub code: String,
    /// Each pair of operand and result.
    pub latencies: Vec<LatencyResult>,
}

/// A list of forms.
#[derive(Debug, Clone, Serialize)]
pub struct List<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `list`.
    pub what: &'static str,
    /// The forms.
    pub forms: &'a [Listed],
}

/// The document of a list.
pub fn list_document(forms: &[Listed]) -> List<'_> {
    List { schema: SCHEMA, what: "list", forms }
}
