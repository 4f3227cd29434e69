//! Loops and branches of counted functions, and their modelled mispredictions.

use serde::{Deserialize, Serialize};
use tma::Address;
use tma::self_test::{Below, Rule};

/// A loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopRow {
    /// Path of the file.
    pub module: String,
    /// Name of its function.
    pub function: String,
    /// First address of its first block.
    pub head: Address,
    /// How often it was entered from outside.
    pub entries: Option<u64>,
    /// How often its first block was entered.
    pub iterations: Option<u64>,
    /// Iterations of each entry.
    pub trips: Trips,
    /// Why one of the three is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which executions of a loop a histogram has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TripsSource {
    /// All.
    Exact,
    /// Executions in bursts.
    Sampled,
}

/// Iterations of an entry of a loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trips {
    /// On average.
    pub mean: Option<f64>,
    /// With `--branches`: trips, and how many of the executions had them that were seen from beginning to end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u64, u64)>,
    /// With `--branches`: executions of which the beginning or the end was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<u64>,
    /// With a histogram: its executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<TripsSource>,
}

/// Which kind of branches a row is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BranchKind {
    /// A conditional jump.
    #[default]
    Conditional,
    /// An indirect jump or call.
    Indirect,
    /// All returns of a function that may call itself, at its address.
    Return,
}

shown_as_written!(BranchKind);

/// A branch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BranchRow {
    /// Path of the file.
    pub module: String,
    /// Name of its function.
    #[serde(default)]
    pub function: String,
    /// Its address.
    pub address: Address,
    /// How often it was executed, where its block has a count.
    #[serde(default)]
    pub executions: Option<u64>,
    /// How often it jumped.
    pub taken: Option<u64>,
    /// How often it did not.
    pub not_taken: Option<u64>,
    /// Kind.
    #[serde(default)]
    pub kind: BranchKind,
    /// How often it is mispredicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<Modelled>,
    /// With `--branches`: why that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why what it has is of different extents: a run was killed, say, and the others were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extents: Option<String>,
}

/// Which of several targets of an indirect branch is predicted where nothing tells which is next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedTarget {
    /// The rule.
    pub rule: Rule,
    /// Whether this processor shows it in the self-test; else it is an assumption.
    pub measured: bool,
    /// Share mispredicted in the self-test, of jumps to two random targets, the rarer with a quarter.
    pub quarter: Option<f64>,
    /// Share mispredicted where the rarer target has an eighth.
    pub eighth: Option<f64>,
}

/// Prediction of returns that the stack of return addresses has no room for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedReturn {
    /// The rule.
    pub rule: Below,
    /// Whether this processor shows it in the self-test; else it is an assumption.
    pub measured: bool,
    /// Share of them mispredicted in the self-test, of calls from two places alternately.
    pub alternate: Option<f64>,
    /// Share of them mispredicted in a pattern of five.
    pub fives: Option<f64>,
}

/// Where numbers of mispredictions are from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelledSource {
    /// A model.
    #[default]
    Modelled,
}

/// A number from a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    /// The number.
    pub value: f64,
    /// The lower end of its 95 % interval, of the sample alone.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Executions that were given to the model.
    pub seen: u64,
    /// Its cost in cycles: the number × `misprediction_cycles`, or the ready or indirect ones.
    pub cycles: Option<f64>,
    /// Cycles of one, also where none is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<f64>,
    /// Its source.
    pub source: ModelledSource,
    /// Seen only while the model was learning, which mispredicts more then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_learning: bool,
}

/// Modelled mispredictions of all branches.
#[derive(Debug, Clone, Copy)]
pub struct Mispredictions<'a> {
    /// How many.
    pub value: f64,
    /// Executions of the modelled branches.
    pub executions: u64,
    /// Cost in cycles, where that of each is known.
    pub cycles: Option<f64>,
    /// The branch with most of them, and its own.
    pub most: Option<(&'a BranchRow, f64)>,
}

impl<'a> Mispredictions<'a> {
    /// The modelled mispredictions of these branches.
    pub fn of(branches: &'a [BranchRow]) -> Self {
        let modelled = || branches.iter().filter_map(|row| Some((row, row.mispredicted.as_ref()?)));
        let with =
            modelled().map(|(row, found)| (row, found.value)).filter(|(_, value)| *value > 0.0);
        Self {
            value: modelled().map(|(_, found)| found.value).sum(),
            executions: modelled().filter_map(|(row, _)| row.executions).sum(),
            cycles: with.clone().map(|(row, _)| row.mispredicted.as_ref()?.cycles).sum(),
            most: with.max_by(|a, b| a.1.total_cmp(&b.1)),
        }
    }
}
