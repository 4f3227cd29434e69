//! The top-down tree of a block, where counters measured it.

use super::rows::{Rows, Weight};
use bench::{Measurement, Node};

/// Deepest chain of parents that is followed; a document may have a cycle.
const DEEPEST: usize = 8;

/// Adds the nodes, parents before their children. Without counters the bounds have all there is.
pub fn tree(rows: &mut Rows, report: &Measurement) {
    if report.throughput.is_none() || !report.hierarchy.is_measured() {
        return;
    }
    rows.heading("top-down");
    let nodes = &report.hierarchy.nodes;
    for node in nodes {
        let indent = 2 * (1 + depth(nodes, node));
        let label = format!("{:indent$}{:<width$}", "", node.label, width = 30 - indent.min(28));
        let weight = match (node.is_verdict, node.share.or(node.bound)) {
            (true, _) => Weight::Strong,
            (_, Some(_)) => Weight::Plain,
            _ => Weight::Faint,
        };
        rows.add(label, node_text(node), weight);
    }
}

/// How many nodes are above it.
fn depth(nodes: &[Node], node: &Node) -> usize {
    let above = |id: &str| nodes.iter().find(|n| n.id == id).and_then(|n| n.parent.as_deref());
    std::iter::successors(node.parent.as_deref(), |id| above(id)).take(DEEPEST).count()
}

/// A node's share of the slots, and the bound that belongs to it.
fn node_text(node: &Node) -> String {
    let share = match (node.share, node.low, node.high) {
        (Some(share), Some(low), Some(high)) if low < high => Some(format!(
            "{:.1} % of slots ({:.1} to {:.1})",
            100.0 * share,
            100.0 * low,
            100.0 * high
        )),
        (Some(share), ..) => Some(format!("{:.1} % of slots", 100.0 * share)),
        _ if node.bound.is_none() => {
            Some(format!("not measured: {}", node.reason.as_deref().unwrap_or("no reason")))
        }
        _ => None,
    };
    let range = node.bound_low.zip(node.bound_high).filter(|(low, high)| high - low >= 0.005);
    let bound = node.bound.map(|bound| match range {
        Some((low, high)) => format!("{low:.2} to {high:.2} cycles"),
        None => format!("{bound:.2} cycles"),
    });
    let parts: Vec<String> = share.into_iter().chain(bound).collect();
    let mark = if node.is_verdict { " <- bounds the time" } else { "" };
    parts.join(", ") + mark
}
