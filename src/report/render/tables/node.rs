//! One node: what it means, its formula and threshold, and the events it needs.

use super::encoding::encoding;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tma::tables::texts::Texts;
use tma::tables::{Node, NodeKind, Table};

/// Everything the table and the reference texts have about `node`.
pub fn node(texts: Texts, table: &Table, node: &Node) -> String {
    let mut out = format!("{}  ({})\n", node.id, node.label);
    let mut field = |key: &str, text: &str| {
        let _ = writeln!(out, "  {key:<10} {text}");
    };
    if node.kind == NodeKind::Tree {
        let parent = node.parent.map(|p| table.nodes[usize::from(p)].id.as_str());
        let under = parent.map(|p| format!(" under {p}")).unwrap_or_default();
        field("level", &format!("{}{under}", node.level));
    }
    if let Some(text) = texts.node(table, &node.id) {
        field("meaning", text.meaning);
        text.causes.iter().for_each(|t| field("causes", t));
        text.next.iter().for_each(|t| field("next", t));
    }
    node.spec.estimate.iter().for_each(|t| field("estimate", t));
    field("formula", &node.spec.formula);
    node.spec.over.iter().for_each(|t| field("over", t));
    node.spec.domain.iter().for_each(|t| field("share of", t));
    node.spec.unit.iter().filter(|u| !u.is_empty()).for_each(|t| field("unit", t));
    let lists =
        [("locate", &node.spec.locate), ("tags", &node.spec.groups), ("issues", &node.spec.issues)];
    for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        field(key, &list.join(", "));
    }
    for (name, text) in events(table, node) {
        field("event", &format!("{name} {text}"));
    }
    out.push('\n');
    out
}

/// The events of a node with their encodings; which SMT setting they are for, if for one only.
fn events(table: &Table, node: &Node) -> Vec<(String, String)> {
    let [off, on] = &node.events;
    let both: BTreeSet<_> = off.iter().chain(on).collect();
    let row = |e: &u16| {
        let event = &table.events[usize::from(*e)];
        let only = match (off.contains(e), on.contains(e)) {
            (true, false) => " (SMT off)",
            (false, true) => " (SMT on)",
            _ => "",
        };
        (event.name.clone(), encoding(table, event) + only)
    };
    both.into_iter().map(row).collect()
}
