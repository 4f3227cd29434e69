//! The top-down tree: the report, the part of it that is shown, and the cursor.

use super::history::History;
use super::list::List;
use super::tree_rows::{Arrangement, TreeRow, rows};
use report::documents::report::Place;
use report::documents::report_file::{Explanation, Explanations};
use report::documents::{NodeRow, Report};
use std::collections::HashMap;
use std::sync::Arc;

/// Deepest chain of parents that is followed; a document may have a cycle.
const DEEPEST: usize = 64;

/// The state of the measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Progress {
    /// Reading, or starting.
    #[default]
    Loading,
    /// Measuring; this many intervals have ended.
    Measuring(usize),
    /// Ended.
    Done,
    /// No report, for this reason.
    Failed(String),
}

/// The screen.
#[derive(Debug, Default)]
pub struct Tree {
    pub report: Option<Box<Report>>,
    /// A later report than `report`, which is frozen.
    pub newer: Option<Box<Report>>,
    pub progress: Progress,
    pub explanations: Arc<Explanations>,
    pub history: History,
    /// Number of the part of the measurement that is shown.
    pub part: usize,
    /// Nodes that the user expanded or collapsed.
    folds: HashMap<String, bool>,
    pub rows: Vec<TreeRow>,
    pub list: List,
    /// Whether details are shown; `None`: if there is room.
    pub details: Option<bool>,
    /// First line of the details that is shown.
    pub details_top: usize,
    /// Siblings by value instead of the table's order.
    pub by_value: bool,
    pub invert: bool,
    pub filter: String,
}

impl Tree {
    /// Shows a report, or keeps it for later while the numbers are frozen.
    pub fn fill(&mut self, report: Box<Report>, frozen: bool) {
        if frozen && self.report.is_some() {
            self.newer = Some(report);
            return;
        }
        self.newer = None;
        let selected = self.selected_id();
        let is_first = self.report.replace(report).is_none();
        self.rebuild_at(selected);
        if is_first && let Some(row) = self.hottest() {
            self.list.to(row);
        }
    }

    /// Shows the report that arrived while the numbers were frozen.
    pub fn thaw(&mut self) {
        if let Some(report) = self.newer.take() {
            self.fill(report, false);
        }
    }

    /// The parts of the measurement.
    pub fn parts(&self) -> Vec<&Place> {
        self.report.as_ref().map(|r| r.places()).unwrap_or_default()
    }

    /// The name of the part that is shown, if there are several.
    pub fn part_name(&self) -> Option<String> {
        let parts = self.parts();
        let name = parts.get(self.part)?.title();
        (parts.len() > 1).then(|| format!("{name} ({}/{})", self.part + 1, parts.len()))
    }

    /// Shows the next part; the cursor stays on the same node.
    pub fn next_part(&mut self) {
        self.part = (self.part + 1) % self.parts().len().max(1);
        self.rebuild();
    }

    /// The node in a row.
    pub fn node(&self, row: usize) -> Option<&NodeRow> {
        self.report.as_ref()?.nodes.get(self.rows.get(row)?.node)
    }

    /// The node at the cursor.
    pub fn selected(&self) -> Option<&NodeRow> {
        self.node(self.list.at)
    }

    fn selected_id(&self) -> Option<String> {
        self.selected().map(|n| n.id.to_string())
    }

    /// A node of the part that is shown.
    pub fn by_id(&self, id: &str) -> Option<&NodeRow> {
        self.part_nodes().map(|(_, n)| n).find(|n| n.id == id)
    }

    /// Explanation of a node by the tables.
    pub fn explanation(&self, node: &NodeRow) -> Option<&Explanation> {
        let table = match &node.place.core {
            Some(core) => core.as_str(),
            None => self.report.as_ref()?.uarch.as_str(),
        };
        self.explanations.get(&(table.to_owned(), node.id.to_string()))
    }

    fn part_nodes(&self) -> impl Iterator<Item = (usize, &NodeRow)> {
        let places = self.parts();
        let part = places.get(self.part).or(places.first()).map(|p| p.key());
        let nodes = self.report.iter().flat_map(|r| r.nodes.iter().enumerate());
        nodes.filter(move |(_, n)| Some(n.place.key()) == part)
    }

    /// Filters, folds and orders the rows; the cursor stays on its node.
    pub fn rebuild(&mut self) {
        self.rebuild_at(self.selected_id());
    }

    /// Rebuilds the rows with the cursor on the node `selected`, or on its nearest shown ancestor.
    fn rebuild_at(&mut self, selected: Option<String>) {
        let nodes: Vec<(usize, &NodeRow)> = self.part_nodes().collect();
        let (by_value, invert) = (self.by_value, self.invert);
        let (filter, folds) = (&self.filter, &self.folds);
        let rows = rows(&nodes, &Arrangement { by_value, invert, filter, folds });
        let nodes = self.report.as_ref().map_or(&[][..], |r| &r.nodes);
        let row_of = |id: &str| rows.iter().position(|r| nodes[r.node].id == id);
        let mut at = None;
        let mut id = selected;
        for _ in 0..DEEPEST {
            let Some(wanted) = id else { break };
            at = row_of(&wanted);
            if at.is_some() {
                break;
            }
            id = self.by_id(&wanted).and_then(|n| Some(n.parent.as_ref()?.to_string()));
        }
        self.list.refill(rows.len(), at);
        self.rows = rows;
    }

    /// Expands or collapses the node at the cursor. `false`: it has no children.
    pub fn fold(&mut self, open: Option<bool>) -> bool {
        let Some(row) = self.rows.get(self.list.at).copied() else { return false };
        let (Some(now), Some(id)) = (row.open, self.selected_id()) else { return false };
        self.folds.insert(id, open.unwrap_or(!now));
        self.rebuild();
        true
    }

    /// Expands or collapses all nodes.
    pub fn fold_all(&mut self, open: bool) {
        let ids: Vec<String> = self.part_nodes().map(|(_, n)| n.id.to_string()).collect();
        self.folds = ids.into_iter().map(|id| (id, open)).collect();
        self.rebuild();
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        self.node(row).map(|n| format!("{} {}", n.label, n.id)).unwrap_or_default()
    }

    /// Expands what hides the bottleneck, or else the deepest flagged node, and returns its row.
    pub fn hottest(&mut self) -> Option<usize> {
        let flagged = || self.part_nodes().map(|(_, n)| n).filter(|n| n.flagged);
        let bottleneck = flagged().find(|n| n.bottleneck);
        let id = bottleneck.or_else(|| flagged().max_by_key(|n| n.level))?.id.clone();
        self.reveal(&id)
    }

    /// The row of the next flagged node.
    pub fn next_hot(&self, down: bool) -> Option<usize> {
        let flagged = |row: &usize| self.node(*row).is_some_and(|n| n.flagged);
        if down {
            (self.list.at + 1..self.rows.len()).find(flagged)
        } else {
            (0..self.list.at.min(self.rows.len())).rev().find(flagged)
        }
    }

    fn reveal(&mut self, id: &str) -> Option<usize> {
        let mut parent = self.by_id(id)?.parent.clone();
        for _ in 0..DEEPEST {
            let Some(one) = parent else { break };
            parent = self.by_id(&one).and_then(|n| n.parent.clone());
            self.folds.insert(one.to_string(), true);
        }
        self.rebuild();
        (0..self.rows.len()).find(|row| self.node(*row).is_some_and(|n| n.id == id))
    }
}
