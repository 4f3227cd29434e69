//! The rows of the tree: ordered, filtered, and without what is collapsed.

use super::matches::matches;
use report::documents::NodeRow;
use std::collections::{HashMap, HashSet};

/// Deepest level that is shown; a document with a cycle of parents ends there.
const DEEPEST: usize = 32;

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
        if depth > DEEPEST {
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
