//! Assumptions of a measurement, and the explanation of its time: bounds, the top-down tree, variants, counted misses.

use super::class::Class;
use serde::Serialize;

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
    /// Whether it is a sum of latencies, and not measured itself.
    #[serde(skip)]
    pub is_computed: bool,
    /// Whether the block is measured to be clearly faster: the bound is wrong and explains nothing.
    pub refuted: bool,
    /// The instructions of the loop-carried dependency, if it is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Whether any latency in it is assumed, because no table or calibration has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

impl Bound {
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

/// The top-down tree of the block.
#[derive(Debug, Clone, Serialize)]
pub struct Hierarchy {
    /// The bound of the block, or why that was not measured, as text.
    pub verdict: String,
    /// The class of the bound; absent where the block's variants were not measured.
    pub bound: Option<Class>,
    /// Nodes, parents before their children; without a PMU each with the reason why it was not
    /// measured.
    pub nodes: Vec<Node>,
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
        Self { verdict: format!("not measured: {reason}"), bound: None, nodes }
    }

    /// Whether any node was measured.
    pub fn is_measured(&self) -> bool {
        self.nodes.iter().any(|node| node.share.is_some())
    }
}

/// The block measured with one thing changed.
#[derive(Debug, Clone, Default, Serialize)]
pub struct WhatIf {
    /// The change: a dependency broken, an instruction removed.
    pub change: String,
    /// Core cycles per iteration with the change.
    pub cycles: Option<f64>,
    /// Lowest.
    pub low: Option<f64>,
    /// Highest.
    pub high: Option<f64>,
    /// Why it was not measured, or a caveat.
    pub reason: Option<String>,
    /// Whether that is contention on the core.
    #[serde(skip)]
    pub disturbed: bool,
    /// Whether removing the instruction cuts a loop-carried dependency, which it carries from one register to
    /// another, or through memory: the program is then a different one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cuts: bool,
}

/// Events counted while the block ran, per iteration; only a PMU has them.
#[derive(Debug, Clone, Serialize)]
pub struct Miss {
    /// The event.
    pub name: String,
    /// Count per iteration.
    pub per_iteration: f64,
    /// The evidence.
    pub how: String,
}

/// Whether an assumption of the measurement holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It held.
    Held,
    /// It did not.
    Violated,
    /// Not checkable here.
    Unchecked,
}

/// Assumptions of a measurement; docs/method/blocks.md describes each by its name in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "they are described there")]
pub enum Assumed {
    L1Data,
    DataTlb,
    L1Code,
    OpCache,
    ContextSwitches,
    Contention,
    Alignment,
    LineCrossing,
    PageCrossing,
    PageAliasing,
    StoreAliasing,
    Masks,
    MappedPages,
    OwnRegisters,
    SteadyState,
    Reproducibility,
    Subnormals,
    PageFaults,
    InstructionCount,
    Bounds,
}

impl Assumed {
    /// As printed, and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::L1Data => "l1-data",
            Self::DataTlb => "data-tlb",
            Self::L1Code => "l1-code",
            Self::OpCache => "op-cache",
            Self::ContextSwitches => "context-switches",
            Self::Contention => "contention",
            Self::Alignment => "alignment",
            Self::LineCrossing => "line-crossing",
            Self::PageCrossing => "page-crossing",
            Self::PageAliasing => "page-aliasing",
            Self::StoreAliasing => "store-aliasing",
            Self::Masks => "masks",
            Self::MappedPages => "mapped-pages",
            Self::OwnRegisters => "own-registers",
            Self::SteadyState => "steady-state",
            Self::Reproducibility => "reproducibility",
            Self::Subnormals => "subnormals",
            Self::PageFaults => "page-faults",
            Self::InstructionCount => "instruction-count",
            Self::Bounds => "bounds",
        }
    }
}

/// One assumption.
#[derive(Debug, Clone, Serialize)]
pub struct Assumption {
    /// Its name.
    pub name: Assumed,
    /// Whether it held.
    #[serde(rename = "verdict")]
    pub outcome: Outcome,
    /// Evidence.
    pub how: String,
}
