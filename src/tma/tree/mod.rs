//! Tree, evaluation, thresholds, bottleneck, advice.
//!
//! | file | concern |
//! |---|---|
//! | `layout` | which group's occurrence of an event each node reads |
//! | `evaluate` | counts → values of nodes |
//! | `jackknife`, `readings` | the error of a value, from repeated readings of its group |
//!
//! [`Evaluator`] turns [`crate::counts::Counts`] into one [`NodeResult`] per node of a table; [`Flags`] says which
//! nodes are flagged and which one is the bottleneck. Pure arithmetic: nothing here measures or formats.
//!
//! ```
//! use tma::counts::{Counts, GroupCounts};
//! use tma::tables::Table;
//! use tma::tree::{Evaluator, Flags};
//!
//! // The tree of Yasin's paper (ISPASS 2014); 1000 cycles of 4 slots.
//! let text = std::fs::read_to_string("../../events/abstract/paper.toml")?;
//! let table = Table::parse(&text, "paper.toml")?;
//! let counted = [
//!     ("TotalSlots", 4000.0),
//!     ("FetchBubbles", 400.0),
//!     ("SlotsIssued", 1300.0),
//!     ("SlotsRetired", 1200.0),
//!     ("RecoveryBubbles", 100.0),
//! ];
//! let event = |(name, count)| (table.event(name).expect("an event of the paper"), Ok(count));
//! let events = counted.map(event).to_vec();
//! let group = GroupCounts::Imported { events, running: None, intervals: Vec::new() };
//! let evaluation =
//!     Evaluator::new(&table).values(&Counts { groups: vec![group], ..Counts::default() });
//!
//! // Front end 400 / 4000, bad speculation (1300 - 1200 + 100) / 4000, retiring 1200 / 4000; the
//! // back end is the rest, 0.55, over its threshold of 0.2.
//! let node = |id| &evaluation.nodes[usize::from(table.node(id).expect("a node of the paper"))];
//! assert_eq!(node("Frontend_Bound").quantity.get(), Some(0.1));
//! assert!((node("Backend_Bound").quantity.get().unwrap() - 0.55).abs() < 1e-9);
//! assert_eq!(node("Memory_Bound").quantity.get(), None, "its events are not among the counts");
//! assert_eq!(Flags::new(&table, &evaluation).bottleneck(), table.node("Backend_Bound"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod evaluate;
mod jackknife;
mod layout;
mod readings;
#[cfg(test)]
mod tests;

use crate::quantity::Quantity;
use crate::tables::{EventId, NodeId, NodeKind, Table};
use layout::Layout;
use std::sync::Arc;

pub use evaluate::Evaluator;
pub use jackknife::student_t95;
pub use readings::MIN_READINGS;

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
    /// By [`NodeId`].
    pub nodes: Vec<NodeResult>,
    /// Where each node's events were read.
    layout: Arc<Layout>,
}

impl Evaluation {
    /// The counted events of node `n` of `table` and the group each was read from; an event without a group has an
    /// index that no group has.
    pub fn sources(&self, table: &Table, n: NodeId) -> Vec<(EventId, usize)> {
        self.layout.sources(table, n)
    }
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
