//! Explanation of a block's time: bounds, their classes and names, the top-down tree, causes
//! of assists.

use crate::values::NoPath;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// How a bound was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Found {
    /// By measuring code.
    #[default]
    Measured,
    /// By counting instructions.
    Computed,
    /// By adding latencies.
    Latencies,
}

impl Found {
    /// As printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Computed | Self::Latencies => "computed",
        }
    }
}

/// A bound on the throughput.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Bound {
    /// Its name.
    pub name: &'static str,
    /// Core cycles per iteration.
    pub cycles: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
    /// Evidence.
    pub how: String,
    /// How it was found.
    #[serde(skip)]
    pub found: Found,
    /// Whether the block is measured to be clearly faster: the bound is wrong and explains nothing.
    pub refuted: bool,
    /// The instructions of the loop-carried dependency, if it is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// The share of a loop-carried dependency's latency that loads take, with their data in L1.
    #[serde(skip)]
    pub loads: f64,
    /// Whether a division or a root is in it.
    #[serde(skip)]
    pub divides: bool,
    /// Whether any latency in it is assumed, because no table or calibration has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

impl Bound {
    /// Whether it is a sum of latencies, which has their errors.
    pub fn is_sum(&self) -> bool {
        self.found == Found::Latencies
    }

    /// The bound scaled to iterations of which a `share` needs it, and the others nothing for certain.
    pub(crate) fn times(self, share: f64) -> Self {
        let Self { cycles, low, high, .. } = self;
        Self { cycles: share * cycles, low: share * low, high: share * high, ..self }
    }

    /// States that it exceeds the measurement.
    pub fn needs_more(&self, measured: f64) -> String {
        let Self { name, cycles, low, high, .. } = self;
        format!(
            "{name} needs {cycles:.3} cycles ({low:.3} to {high:.3}), more than the {measured:.3} \
             measured"
        )
    }
}

/// The bound that explains a block's time, or that none does.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The bound.
    pub class: Class,
    /// The evidence.
    pub why: String,
}

/// What the variants of a block show.
#[derive(Debug, Clone, PartialEq)]
pub enum Explanation {
    /// A verdict, and the part of the block that it is on, if not all: ` of the loop form`.
    Verdict(Verdict, String),
    /// None, for this reason.
    NoVerdict(String),
    /// None, since no path stands for the loop.
    NoPath(NoPath),
    /// None, as only the time was asked for.
    NotRequested,
}

/// The top-down tree of the block. The document has `verdict` as text, and its class as `bound`.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    /// The bottleneck by the counters, or why nothing was counted.
    pub counted: String,
    /// What the variants show; absent for a block without a time.
    pub explanation: Option<Explanation>,
    /// Nodes, parents before their children; without a PMU each with the reason why it was not
    /// measured.
    pub nodes: Vec<Node>,
}

impl Serialize for Hierarchy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Hierarchy", 3)?;
        fields.serialize_field("verdict", &self.to_string())?;
        fields.serialize_field("bound", &self.bound())?;
        fields.serialize_field("nodes", &self.nodes)?;
        fields.end()
    }
}

/// The bound of the block, or why that was not measured.
impl fmt::Display for Hierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = &self.counted;
        match &self.explanation {
            Some(Explanation::Verdict(Verdict { class, why }, part)) => {
                write!(f, "{class}{part}: {why}")
            }
            Some(Explanation::NoVerdict(why)) if self.is_measured() => {
                write!(f, "{counted}; no verdict: {why}")
            }
            // The nodes say why they were not counted; a verdict needs no counters.
            Some(Explanation::NoVerdict(why)) => write!(f, "no verdict: {why}"),
            Some(Explanation::NoPath(why)) => write!(f, "not known: {why}"),
            Some(Explanation::NotRequested) if !self.is_measured() => {
                f.write_str("not requested (--quick and --no-explain leave it out)")
            }
            Some(Explanation::NotRequested) | None => f.write_str(counted),
        }
    }
}

/// One node of the tree.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Node {
    /// Its id in the event tables, `Frontend_Bound`.
    pub id: String,
    /// Its display name.
    pub label: String,
    /// The id of its parent.
    pub parent: Option<String>,
    /// Share of the pipeline's slots, 0 to 1; absent where it was not measured.
    pub share: Option<f64>,
    /// Lowest of the runs.
    pub low: Option<f64>,
    /// Highest of the runs.
    pub high: Option<f64>,
    /// Why it was not measured.
    pub reason: Option<String>,
    /// The block's bound for this node in core cycles per iteration; bounds of nodes overlap.
    pub bound: Option<f64>,
    /// The lowest that it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_low: Option<f64>,
    /// The highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_high: Option<f64>,
    /// Whether it bounds the block's time.
    pub is_verdict: bool,
}

impl Hierarchy {
    /// A tree without measurements: level 1 of this processor's tree, each node with `reason`.
    pub fn not_measured(reason: &str, level_1: &[(String, String)]) -> Self {
        let node = |(id, label): &(String, String)| Node {
            id: id.clone(),
            label: label.clone(),
            reason: Some(reason.to_owned()),
            ..Node::default()
        };
        let nodes = level_1.iter().map(node).collect();
        Self { counted: format!("not measured: {reason}"), explanation: None, nodes }
    }

    /// The verdict, if there is one.
    pub fn verdict(&self) -> Option<&Verdict> {
        match &self.explanation {
            Some(Explanation::Verdict(verdict, _)) => Some(verdict),
            _ => None,
        }
    }

    /// The class of the verdict; absent where the block's variants were not measured.
    pub fn bound(&self) -> Option<Class> {
        self.verdict().map(|verdict| verdict.class)
    }

    /// Whether any node was measured.
    pub fn is_measured(&self) -> bool {
        self.nodes.iter().any(|node| node.share.is_some())
    }
}

/// The class of a block's bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Class {
    /// Fetching and decoding: slower than the pipeline is wide.
    FrontEnd,
    /// Issue slots: as many operations as the pipeline issues per cycle.
    IssueWidth,
    /// Execution ports, or a unit that is not pipelined.
    Ports,
    /// A loop-carried dependency through registers and flags.
    Dependency,
    /// A loop-carried dependency through memory, or loads that wait for stores.
    StoreForwarding,
    /// Where in the L1 data cache loads and stores lie: its banks, or lines that stores are committed to.
    L1Access,
    /// Assists, for this cause.
    Assist(Cause),
    /// Several bounds reach the time within the errors.
    Undecided,
    /// No bound does.
    Unexplained,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 12] = [
        Self::FrontEnd,
        Self::IssueWidth,
        Self::Ports,
        Self::Dependency,
        Self::StoreForwarding,
        Self::L1Access,
        Self::Assist(Cause::Transition),
        Self::Assist(Cause::X87Stack),
        Self::Assist(Cause::Subnormals),
        Self::Assist(Cause::SuppressedFaults),
        Self::Undecided,
        Self::Unexplained,
    ];

    /// As documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::FrontEnd => bound_names::FRONT_END,
            Self::IssueWidth => bound_names::WIDTH,
            Self::Ports => bound_names::PORTS,
            Self::Dependency => bound_names::DEPENDENCY,
            Self::StoreForwarding => bound_names::FORWARDING,
            Self::L1Access => bound_names::L1_ACCESS,
            Self::Assist(cause) => cause.name(),
            Self::Undecided => "undecided",
            Self::Unexplained => "unexplained",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Nothing that bounds a block has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoClass(String);

impl fmt::Display for NoClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing bounds a block that is called `{}`", self.0)
    }
}

impl From<Class> for String {
    fn from(class: Class) -> Self {
        class.name().to_owned()
    }
}

impl TryFrom<String> for Class {
    type Error = NoClass;

    fn try_from(name: String) -> Result<Self, NoClass> {
        let found = Self::ALL.into_iter().find(|class| class.name() == name);
        found.ok_or(NoClass(name))
    }
}

/// The cause of an assist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Legacy SSE code where upper halves of vector registers are not zero.
    Transition,
    /// The x87 register stack overflows, or an empty register is read.
    X87Stack,
    /// Subnormal operands or results.
    Subnormals,
    /// Masked accesses to pages that are not mapped.
    SuppressedFaults,
}

impl Cause {
    /// As documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transition => bound_names::TRANSITION,
            Self::X87Stack => bound_names::X87_STACK,
            Self::Subnormals => bound_names::SUBNORMALS,
            Self::SuppressedFaults => bound_names::SUPPRESSED_FAULTS,
        }
    }

    /// Description of the measurement without it.
    pub fn avoided(self) -> &'static str {
        match self {
            Self::Transition => "vzeroupper before its SSE instructions",
            Self::X87Stack => "its x87 stack filled before and emptied after each iteration",
            Self::Subnormals => "no subnormal numbers",
            Self::SuppressedFaults => "masks that select everything",
        }
    }
}

/// Names of bounds in documents.
pub mod bound_names {
    /// The instructions with independent operands.
    pub const PORTS: &str = "ports";

    /// Issue slots, measured with added nops.
    pub const SLOTS: &str = "slots";

    /// Loop-carried latency through registers and flags.
    pub const DEPENDENCY: &str = "dependency";

    /// Loop-carried latency through memory, or loads that wait for stores.
    pub const FORWARDING: &str = "store-forwarding";

    /// Banks of the L1 data cache, or lines that stores are committed to.
    pub const L1_ACCESS: &str = "l1-access";

    /// The front end in isolation; part of every measurement.
    pub const FRONT_END: &str = "front-end";

    /// Issue slots by instruction count; part of every measurement.
    pub const WIDTH: &str = "issue-width";

    /// SSE code where upper halves of vector registers are not zero.
    pub const TRANSITION: &str = "sse-avx-transition";

    /// Faults of the x87 register stack.
    pub const X87_STACK: &str = "x87-stack";

    /// Subnormal numbers.
    pub const SUBNORMALS: &str = "subnormals";

    /// Faults of masked accesses.
    pub const SUPPRESSED_FAULTS: &str = "suppressed-faults";

    /// Causes of assists.
    pub const CAUSES: [&str; 4] = [TRANSITION, X87_STACK, SUBNORMALS, SUPPRESSED_FAULTS];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents have these names.
    #[test]
    fn names_are_those_of_documents() {
        let names = [
            "front-end",
            "issue-width",
            "ports",
            "dependency",
            "store-forwarding",
            "l1-access",
            "sse-avx-transition",
            "x87-stack",
            "subnormals",
            "suppressed-faults",
            "undecided",
            "unexplained",
        ];
        for (class, name) in Class::ALL.into_iter().zip(names) {
            assert_eq!(serde_json::to_value(class).unwrap(), name);
            assert_eq!(serde_json::from_value::<Class>(name.into()).unwrap(), class);
        }
        assert!(serde_json::from_value::<Class>("slots".into()).is_err());
    }
}
