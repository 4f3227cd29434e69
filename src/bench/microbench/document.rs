//! What is said about a kernel: `tdtool.kernel/1`. Text and CSV are views of it.

use super::generate::Settings;
use crate::{Assumption, Code, Status};
use serde::Serialize;

/// The schema's name and version.
pub const SCHEMA: &str = "tdtool.kernel/1";

/// A form, and how often it is in the multiset.
#[derive(Debug, Clone, Serialize)]
pub struct FormCount {
    /// Its name.
    pub form: String,
    /// iced-x86's name of its encoding.
    pub code: String,
    /// How often.
    pub count: usize,
}

/// A number of core cycles.
#[derive(Debug, Clone, Serialize)]
pub struct Cycles {
    /// For the multiset once.
    pub cycles: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
}

/// What instructions of a kernel have to do with each other, although each got operands of its own
/// where it could.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Touching {
    /// The form that writes.
    pub writer: String,
    /// The form that reads it.
    pub reader: String,
    /// Through what: `destination`, `implicit rax`, `flags CF`, `memory`, or `register …` where it
    /// should not be.
    pub through: String,
    /// How many places (registers, memory slots) are used in turn.
    pub in_turn: usize,
    /// Whether the forms leave no choice.
    pub unavoidable: bool,
}

/// The bound that these dependencies put on the multiset.
#[derive(Debug, Clone, Serialize)]
pub struct Bounded {
    /// Core cycles for the multiset once, at least: with the shortest latencies.
    pub low: f64,
    /// With the longest.
    pub high: f64,
    /// What carries it.
    pub through: Vec<String>,
    /// Who says how long each takes.
    pub sources: Vec<String>,
    /// Whether it explains the measured cycles: they are not more than a tenth above it.
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
    /// How often it is in the code.
    pub sets: usize,
    /// What was asked for.
    pub settings: Settings,
    /// The code; all of it in `hex`, the first multiset as `instructions`.
    pub code: Code,
    /// How it went.
    pub status: Status,
    /// Why, unless `ok`.
    pub reason: Option<String>,
    /// For the multiset once, as straight code between fences.
    pub cycles: Option<Cycles>,
    /// Instructions per cycle.
    pub ipc: Option<f64>,
    /// The same as a loop.
    #[serde(rename = "loop")]
    pub looped: Option<Cycles>,
    /// Why there is none.
    pub loop_reason: Option<String>,
    /// Source of the cycles.
    pub clock: Option<&'static str>,
    /// Dependencies that are left.
    pub dependencies: Vec<Touching>,
    /// Their bound.
    pub bounded_by: Option<Bounded>,
    /// The assumptions of the measurement.
    pub assumptions: Vec<Assumption>,
}

/// From an operand to a result.
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
    /// Core cycles, if they could be measured.
    pub cycles: Option<f64>,
    /// Lowest: with errors, over all values tried, and with what is not known of the connectors.
    pub low: Option<f64>,
    /// Highest.
    pub high: Option<f64>,
    /// Where it was measured with several values: the shortest, `cycles` being the longest.
    pub least: Option<f64>,
    /// Right behind another of its kind, where that is shorter than behind other instructions.
    pub chained: Option<f64>,
    /// The chain, and what was subtracted.
    pub chain: String,
    /// How the measurement went.
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
    pub forms: &'a [super::Listed],
}

/// The document of a list.
pub fn list_document(forms: &[super::Listed]) -> List<'_> {
    List { schema: SCHEMA, what: "list", forms }
}
