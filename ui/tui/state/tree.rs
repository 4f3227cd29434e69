//! The top-down tree: which rows are open, what was measured before, and what the tables say.

use super::{List, matches};
use engine::documents::report::Place;
use engine::documents::{NodeRow, Report};
use engine::render::format;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Intervals whose values are kept.
const REMEMBERED: usize = 240;

/// What the tables say of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    pub meaning: Option<String>,
    pub causes: Option<String>,
    pub next: Option<String>,
    pub formula: String,
    pub over: Option<String>,
}

/// By table and node.
pub type Explanations = Arc<HashMap<(String, String), Explanation>>;

/// How far the measurement is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Progress {
    /// Reading, or starting.
    #[default]
    Loading,
    /// A live measurement runs; so many intervals are over.
    Measuring(usize),
    /// Over.
    Done,
    /// There is nothing, for this reason.
    Failed(String),
}

/// A node that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeRow {
    /// Its index in the report.
    pub node: usize,
    /// How deep it is drawn.
    pub depth: usize,
    /// Whether it has children, and they are shown.
    pub open: Option<bool>,
}

/// The screen.
#[derive(Debug, Default)]
pub struct Tree {
    pub report: Option<Box<Report>>,
    /// Newer than `report`, which is frozen.
    pub newer: Option<Box<Report>>,
    pub progress: Progress,
    pub explanations: Explanations,
    /// Values of the last intervals, by part and name.
    history: HashMap<String, VecDeque<Option<f64>>>,
    /// Which part of the measurement is shown.
    pub part: usize,
    /// Nodes that a person opened or closed.
    folds: HashMap<String, bool>,
    pub rows: Vec<TreeRow>,
    pub list: List,
    /// Details chosen or hidden; `None`: where there is room.
    pub details: Option<bool>,
    /// First line of them that is shown.
    pub details_top: usize,
    /// Siblings by value instead of the table's order.
    pub by_value: bool,
    pub invert: bool,
    pub filter: String,
}

impl Tree {
    /// A whole report, or an interval's.
    pub fn fill(&mut self, report: Box<Report>, frozen: bool) {
        if frozen && self.report.is_some() {
            self.newer = Some(report);
            return;
        }
        self.newer = None;
        let selected = self.node(self.list.at).map(|n| n.id.clone());
        self.report = Some(report);
        self.order_rows(selected);
    }

    /// Shows what came while it was frozen.
    pub fn thaw(&mut self) {
        if let Some(report) = self.newer.take() {
            self.fill(report, false);
        }
    }

    /// Keeps the values of an interval, shown or not.
    pub fn remember(&mut self, report: &Report) {
        let nodes = report.nodes.iter().map(|n| (key(&n.place, &n.id), n.value));
        let seconds = report.interval.map(|(a, b)| b - a).filter(|s| *s > 0.0);
        let rate = |value: &Option<f64>| Some(value.as_ref()? / seconds?);
        let software = report.software.iter().map(|(name, v)| (software_key(name), rate(v)));
        for (key, value) in nodes.chain(software) {
            let values = self.history.entry(key).or_default();
            if values.len() == REMEMBERED {
                values.pop_front();
            }
            values.push_back(value);
        }
    }

    /// The values of a node in the intervals so far, oldest first.
    pub fn node_history(&self, node: &NodeRow) -> Option<&VecDeque<Option<f64>>> {
        self.history.get(&key(&node.place, &node.id))
    }

    /// The rates of a software count in the intervals so far.
    pub fn software_history(&self, name: &str) -> Option<&VecDeque<Option<f64>>> {
        self.history.get(&software_key(name))
    }

    /// The parts of the measurement.
    pub fn parts(&self) -> Vec<&Place> {
        self.report.as_ref().map(|r| r.places()).unwrap_or_default()
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

    /// A node of the part that is shown.
    pub fn by_id(&self, id: &str) -> Option<&NodeRow> {
        self.part_nodes().map(|(_, n)| n).find(|n| n.id == id)
    }

    /// What the tables say of a node.
    pub fn explanation(&self, node: &NodeRow) -> Option<&Explanation> {
        let table = match &node.place.core {
            Some(core) => core,
            None => &self.report.as_ref()?.uarch,
        };
        self.explanations.get(&(table.clone(), node.id.clone()))
    }

    fn part_nodes(&self) -> impl Iterator<Item = (usize, &NodeRow)> {
        let places = self.parts();
        let part = places.get(self.part).or(places.first()).map(|p| p.key());
        let nodes = self.report.iter().flat_map(|r| r.nodes.iter().enumerate());
        nodes.filter(move |(_, n)| Some(n.place.key()) == part)
    }

    /// Filters, folds and orders anew; the cursor stays on its node.
    pub fn rebuild(&mut self) {
        let selected = self.node(self.list.at).map(|n| n.id.clone());
        self.order_rows(selected);
    }

    fn order_rows(&mut self, selected: Option<String>) {
        let rows = Rows::of(self).build();
        let nodes = self.report.as_ref().map_or(&[][..], |r| &r.nodes);
        let find = |id: &str| rows.iter().position(|r| nodes[r.node].id == id);
        // A node that went away leaves the cursor to its nearest ancestor.
        let mut at = None;
        let mut id = selected;
        let mut climbed = 0;
        while let (None, Some(wanted)) = (at, &id) {
            at = find(wanted);
            let parent = self.by_id(wanted).and_then(|n| n.parent.clone());
            climbed += 1;
            id = parent.filter(|_| climbed < 64);
        }
        self.list.refill(rows.len(), at);
        self.rows = rows;
    }

    /// Opens or closes the node of the cursor's row. `false`: there is nothing below it.
    pub fn fold(&mut self, open: Option<bool>) -> bool {
        let Some(row) = self.rows.get(self.list.at).copied() else { return false };
        let Some(now) = row.open else { return false };
        let Some(id) = self.node(self.list.at).map(|n| n.id.clone()) else { return false };
        self.folds.insert(id, open.unwrap_or(!now));
        self.rebuild();
        true
    }

    /// Opens or closes everything.
    pub fn fold_all(&mut self, open: bool) {
        let ids: Vec<String> = self.part_nodes().map(|(_, n)| n.id.clone()).collect();
        self.folds = ids.into_iter().map(|id| (id, open)).collect();
        self.rebuild();
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        self.node(row).map(|n| format!("{} {}", n.label, n.id)).unwrap_or_default()
    }

    /// Opens what hides the bottleneck, or else the deepest flagged node, and returns its row.
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
        for _ in 0..64 {
            let Some(one) = parent else { break };
            parent = self.by_id(&one).and_then(|n| n.parent.clone());
            self.folds.insert(one, true);
        }
        self.rebuild();
        (0..self.rows.len()).find(|row| self.node(*row).is_some_and(|n| n.id == id))
    }
}

fn key(place: &Place, id: &str) -> String {
    // Without the interval: that is what history runs over.
    format!("{} {} {id}", place.core.as_deref().unwrap_or(""), place.scope.as_deref().unwrap_or(""))
}

fn software_key(name: &str) -> String {
    format!("software {name}")
}

/// Makes rows of the nodes of one part.
struct Rows<'a> {
    tree: &'a Tree,
    children: HashMap<Option<&'a str>, Vec<(usize, &'a NodeRow)>>,
    all_missing: bool,
    /// Nodes that match the filter and those above them.
    wanted: Option<HashSet<&'a str>>,
}

impl<'a> Rows<'a> {
    fn of(tree: &'a Tree) -> Self {
        let ids: HashSet<&str> = tree.part_nodes().map(|(_, n)| n.id.as_str()).collect();
        let mut children: HashMap<Option<&str>, Vec<(usize, &NodeRow)>> = HashMap::new();
        for (i, node) in tree.part_nodes() {
            // A node whose parent was not asked for stands at the top.
            let parent = node.parent.as_deref().filter(|p| ids.contains(p) && *p != node.id);
            children.entry(parent).or_default().push((i, node));
        }
        if tree.by_value || tree.invert {
            for list in children.values_mut() {
                if tree.by_value {
                    let value = |n: &NodeRow| n.value.unwrap_or(f64::NEG_INFINITY);
                    list.sort_by(|(_, a), (_, b)| value(b).total_cmp(&value(a)));
                }
                if tree.invert {
                    list.reverse();
                }
            }
        }
        let all_missing = tree.part_nodes().all(|(_, n)| n.value.is_none());
        let wanted = (!tree.filter.is_empty()).then(|| wanted(tree));
        Self { tree, children, all_missing, wanted }
    }

    fn build(&self) -> Vec<TreeRow> {
        let mut rows = Vec::new();
        self.below(None, 0, &mut rows);
        rows
    }

    fn below(&self, parent: Option<&str>, depth: usize, rows: &mut Vec<TreeRow>) {
        // Deeper than any table: a document that runs in circles.
        if depth > 32 {
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
                self.below(Some(&node.id), depth + 1, rows);
            }
        }
    }

    /// As the report does it: below what is flagged, and below what has no threshold to say so.
    fn is_open(&self, node: &NodeRow) -> bool {
        if self.wanted.is_some() {
            return true;
        }
        let usual =
            !self.all_missing && (node.flagged || (node.over.is_none() && node.value.is_some()));
        self.tree.folds.get(&node.id).copied().unwrap_or(usual)
    }
}

fn wanted(tree: &Tree) -> HashSet<&str> {
    let by_id: HashMap<&str, &NodeRow> =
        tree.part_nodes().map(|(_, n)| (n.id.as_str(), n)).collect();
    let mut wanted = HashSet::new();
    for (_, node) in tree.part_nodes() {
        if matches(&format!("{} {}", node.label, node.id), &tree.filter) {
            let mut now = Some(node);
            while let Some(node) = now.filter(|n| wanted.insert(n.id.as_str())) {
                now = node.parent.as_deref().and_then(|p| by_id.get(p).copied());
            }
        }
    }
    wanted
}

/// The part that rows are of, in words.
pub fn part_name(tree: &Tree) -> Option<String> {
    let parts = tree.parts();
    let name = format::place(parts.get(tree.part)?);
    (parts.len() > 1).then(|| format!("{name} ({}/{})", tree.part + 1, parts.len()))
}
