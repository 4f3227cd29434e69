//! Which nodes a report is about.

use crate::error::Result;
use crate::report::Selection;
use crate::schedule::{Budget, deepest_without_multiplexing};
use crate::tables::{NodeId, NodeKind, PmuKind, Table, select};

/// What the user wants to see.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Deepest level; `None`: the deepest that needs no multiplexing (live) or is complete
    /// (imports).
    pub level: Option<u32>,
    /// Node list as [`select`] takes it; `None`: the whole tree down to the level.
    pub nodes: Option<String>,
    /// Add the bottlenecks view.
    pub bottlenecks: bool,
}

/// Nodes of one table, and the level they reach.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Deepest level shown.
    pub level: u32,
    /// Rows of the report.
    pub selection: Selection,
    /// Nodes to count for: the rows, and the infos that cost no general counter.
    pub counted: Vec<NodeId>,
}

impl Ask {
    /// The nodes for a live measurement within `budget`.
    ///
    /// # Errors
    /// The node list names what the table does not have.
    pub fn live(&self, table: &Table, smt: bool, budget: &Budget) -> Result<Chosen> {
        let level = match (self.level, &self.nodes) {
            (Some(level), _) => level,
            (None, Some(_)) => table.depth(),
            (None, None) => deepest_without_multiplexing(table, smt, budget),
        };
        let mut chosen = self.at_level(table, level)?;
        let free = |n: &NodeId| costs_nothing(table, *n, smt);
        let infos = chosen.selection.beside.iter().copied();
        let kept = |n: &NodeId| {
            table.nodes[usize::from(*n)].kind == NodeKind::Bottleneck
                || free(n)
                || self.names(*n, table)
        };
        let infos: Vec<NodeId> = infos.filter(kept).collect();
        chosen.counted = chosen.selection.tree.iter().copied().chain(infos).collect();
        Ok(chosen)
    }

    /// The nodes down to `level`, or those of the node list.
    ///
    /// # Errors
    /// The node list names what the table does not have.
    pub fn at_level(&self, table: &Table, level: u32) -> Result<Chosen> {
        let mut selection = Selection::level(table, level, self.bottlenecks);
        if let Some(list) = &self.nodes {
            let listed = select(table, list)?;
            let is_tree = |n: &NodeId| table.nodes[usize::from(*n)].kind == NodeKind::Tree;
            let within = |n: &NodeId| {
                self.level.is_none_or(|level| table.nodes[usize::from(*n)].level <= level)
            };
            selection.tree = listed.iter().copied().filter(is_tree).filter(within).collect();
            for n in listed.into_iter().filter(|n| !is_tree(n)) {
                if !selection.beside.contains(&n) {
                    selection.beside.push(n);
                }
            }
            selection.beside.sort_unstable();
        }
        let deepest = selection.tree.iter().map(|n| table.nodes[usize::from(*n)].level).max();
        let counted = selection.tree.iter().chain(&selection.beside).copied().collect();
        Ok(Chosen { level: deepest.unwrap_or(0), selection, counted })
    }

    /// Whether the node list asks for this info by name.
    fn names(&self, n: NodeId, table: &Table) -> bool {
        self.nodes.as_ref().is_some_and(|l| select(table, l).is_ok_and(|s| s.contains(&n)))
    }
}

/// Whether a node's core events all sit on fixed counters, so that counting it is free.
fn costs_nothing(table: &Table, n: NodeId, smt: bool) -> bool {
    let events = table.events_of(n, smt);
    let fixed = |spec: &crate::tables::EventSpec| match spec.pmu {
        PmuKind::Core => spec.fixed.is_some() && spec.ring.is_none(),
        PmuKind::Tsc => true,
        _ => false,
    };
    !events.is_empty() && events.iter().all(|e| fixed(&table.events[usize::from(*e)].spec))
}
