//! The top-down tree: the report, the part of it that is shown, the cursor; its rows: ordered, filtered, and without
//! what is collapsed.

use super::intervals::History;
use super::list::{List, matches};
use report::documents::report::Place;
use report::documents::report_file::{Explanation, Explanations};
use report::documents::{NodeRow, Report};
use std::collections::{HashMap, HashSet};
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

/// Deepest level that is shown; a document with a cycle of parents ends there.
const DEEPEST_ROW: usize = 32;

/// A node that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeRow {
    /// Its index in the report.
    pub node: usize,
    /// Its indentation.
    pub depth: usize,
    /// Whether its children are shown; `None`: it has none.
    pub open: Option<bool>,
}

/// How the rows are chosen and ordered.
pub struct Arrangement<'a> {
    /// Siblings by value instead of the table's order.
    pub by_value: bool,
    /// In reverse.
    pub invert: bool,
    /// Only nodes that match, and those above them; empty: all.
    pub filter: &'a str,
    /// Nodes that the user expanded or collapsed.
    pub folds: &'a HashMap<String, bool>,
}

/// The rows of `nodes`, given with their indices in the report.
pub fn rows(nodes: &[(usize, &NodeRow)], arrangement: &Arrangement) -> Vec<TreeRow> {
    let mut rows = Vec::new();
    Builder::new(nodes, arrangement).add_children(None, 0, &mut rows);
    rows
}

type Children<'a> = HashMap<Option<&'a str>, Vec<(usize, &'a NodeRow)>>;

struct Builder<'a> {
    folds: &'a HashMap<String, bool>,
    children: Children<'a>,
    all_missing: bool,
    /// Nodes that match the filter, and those above them.
    wanted: Option<HashSet<&'a str>>,
}

impl<'a> Builder<'a> {
    fn new(nodes: &[(usize, &'a NodeRow)], arrangement: &Arrangement<'a>) -> Self {
        Self {
            folds: arrangement.folds,
            children: children(nodes, arrangement),
            all_missing: nodes.iter().all(|(_, n)| n.value.is_none()),
            wanted: (!arrangement.filter.is_empty()).then(|| wanted(nodes, arrangement.filter)),
        }
    }

    fn add_children(&self, parent: Option<&str>, depth: usize, rows: &mut Vec<TreeRow>) {
        if depth > DEEPEST_ROW {
            return;
        }
        for (index, node) in self.children.get(&parent).map_or(&[][..], |c| c) {
            if self.wanted.as_ref().is_some_and(|w| !w.contains(node.id.as_str())) {
                continue;
            }
            let has_children = self.children.contains_key(&Some(node.id.as_str()));
            let open = has_children.then(|| self.is_open(node));
            rows.push(TreeRow { node: *index, depth, open });
            if open == Some(true) {
                self.add_children(Some(&node.id), depth + 1, rows);
            }
        }
    }

    /// As in a text report, flagged nodes and those without a threshold are expanded.
    fn is_open(&self, node: &NodeRow) -> bool {
        if self.wanted.is_some() {
            return true;
        }
        let default =
            !self.all_missing && (node.flagged || (node.over.is_none() && node.value.is_some()));
        self.folds.get(node.id.as_str()).copied().unwrap_or(default)
    }
}

fn children<'a>(nodes: &[(usize, &'a NodeRow)], arrangement: &Arrangement) -> Children<'a> {
    let ids: HashSet<&str> = nodes.iter().map(|(_, n)| n.id.as_str()).collect();
    let mut children = Children::new();
    for (i, node) in nodes {
        // A node whose parent is not in the report is at the top.
        let parent = node.parent.as_deref().filter(|p| ids.contains(p) && *p != node.id);
        children.entry(parent).or_default().push((*i, node));
    }
    for list in children.values_mut() {
        if arrangement.by_value {
            let value = |n: &NodeRow| n.value.unwrap_or(f64::NEG_INFINITY);
            list.sort_by(|(_, a), (_, b)| value(b).total_cmp(&value(a)));
        }
        if arrangement.invert {
            list.reverse();
        }
    }
    children
}

fn wanted<'a>(nodes: &[(usize, &'a NodeRow)], filter: &str) -> HashSet<&'a str> {
    let by_id: HashMap<&str, &NodeRow> = nodes.iter().map(|(_, n)| (n.id.as_str(), *n)).collect();
    let mut wanted = HashSet::new();
    for (_, node) in nodes {
        if matches(&format!("{} {}", node.label, node.id), filter) {
            let mut now = Some(*node);
            while let Some(node) = now.filter(|n| wanted.insert(n.id.as_str())) {
                now = node.parent.as_deref().and_then(|p| by_id.get(p).copied());
            }
        }
    }
    wanted
}
