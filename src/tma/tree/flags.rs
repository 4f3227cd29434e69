//! Results of an evaluation, for each node: which are flagged, which are mismeasured, and which one is the bottleneck.

use crate::quantity::Quantity;
use crate::tables::{NodeId, NodeKind, Table};

/// The result for one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeResult {
    /// Value with error and running share; ratios as ratios.
    pub quantity: Quantity,
    /// Its terms had to come from several groups, which share no common time.
    pub split: bool,
    /// The vendor's threshold: holds, does not hold, or there is none (or a term is missing).
    pub over: Option<bool>,
}

/// Results of all nodes of a table for one [`Counts`](crate::counts::Counts).
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// By [`NodeId`](crate::tables::NodeId).
    pub nodes: Vec<NodeResult>,
}

/// A share outside this range is *mismeasured*: −5 % to 105 %.
pub const MISMEASURED: std::ops::RangeInclusive<f64> = -0.05..=1.05;

/// Without errors, two siblings closer than this are undecided: 5 points.
pub const UNDECIDED_WITHOUT_ERROR: f64 = 0.05;

/// Two flagged siblings whose order the errors do not settle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Undecided {
    /// The heavier one, as measured.
    pub first: NodeId,
    /// The next.
    pub second: NodeId,
    /// How far apart they would have to be.
    pub margin: f64,
}

/// Flags and bottleneck of one evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Flags {
    /// By node: over its threshold, as are all its ancestors, and measured believably.
    pub flagged: Vec<bool>,
    /// By node: a share outside [`MISMEASURED`].
    pub mismeasured: Vec<bool>,
    /// From level 1 down to the bottleneck; empty when nothing is flagged or level 1 is undecided.
    pub path: Vec<NodeId>,
    /// Where the heaviest path forks and the errors do not say which way it goes.
    pub undecided: Option<Undecided>,
}

impl Flags {
    /// Judges all of `evaluation`.
    pub fn new(table: &Table, evaluation: &Evaluation) -> Self {
        Self::among(table, evaluation, |_| true)
    }

    /// Judges `evaluation`, looking for the bottleneck among the nodes that are `shown`.
    pub fn among(table: &Table, evaluation: &Evaluation, shown: impl Fn(NodeId) -> bool) -> Self {
        let mismeasured: Vec<bool> = table
            .nodes
            .iter()
            .zip(&evaluation.nodes)
            .map(|(node, result)| {
                let ratio = node.kind == NodeKind::Tree && node.spec.unit.is_none();
                ratio && result.quantity.get().is_some_and(|v| !MISMEASURED.contains(&v))
            })
            .collect();
        let mut flagged = vec![false; table.nodes.len()];
        for (n, node) in table.nodes.iter().enumerate() {
            // Parents come before their children.
            let ancestors = node.parent.is_none_or(|p| flagged[usize::from(p)]);
            flagged[n] = ancestors && !mismeasured[n] && evaluation.nodes[n].over == Some(true);
        }
        let mut flags = Self { flagged, mismeasured, path: Vec::new(), undecided: None };
        flags.descend(table, evaluation, &shown);
        flags
    }

    /// The bottleneck: the deepest flagged node on the heaviest path.
    pub fn bottleneck(&self) -> Option<NodeId> {
        self.path.last().copied()
    }

    fn descend(&mut self, table: &Table, evaluation: &Evaluation, shown: &dyn Fn(NodeId) -> bool) {
        loop {
            let mut candidates: Vec<(f64, NodeId)> = table
                .children(self.bottleneck())
                .filter(|&n| shown(n) && self.flagged[usize::from(n)])
                .filter_map(|n| Some((evaluation.nodes[usize::from(n)].quantity.get()?, n)))
                .collect();
            // Stable: equal values stay in the order of the table.
            candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
            let Some(&(heaviest, first)) = candidates.first() else { return };
            if let Some(&(next, second)) = candidates.get(1) {
                let margin = margin(evaluation, first, second);
                if heaviest - next <= margin {
                    self.undecided = Some(Undecided { first, second, margin });
                    return;
                }
            }
            self.path.push(first);
        }
    }
}

/// The least significant difference of two values: both errors, as independent ones.
fn margin(evaluation: &Evaluation, a: NodeId, b: NodeId) -> f64 {
    let error = |n: NodeId| evaluation.nodes[usize::from(n)].quantity.error.as_ref().ok().copied();
    match (error(a), error(b)) {
        (Some(a), Some(b)) => a.hypot(b),
        _ => UNDECIDED_WITHOUT_ERROR,
    }
}
