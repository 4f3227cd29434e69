//! The colour of a frame: of the node that dominates it, else of the time of its function.

use crate::documents::flame::{FlameGraph, Frame};

/// Colours of nodes, told apart by colour-blind readers too: M. Okabe, K. Ito, "Color Universal Design" (2008),
/// lightened for dark text. A word in the node's name, and its colour.
const NODES: [(&str, &str); 9] = [
    ("retiring", "#66c2a4"),
    ("bad", "#e8a0c4"),
    ("mispredict", "#e8a0c4"),
    ("memory", "#f0a35e"),
    ("latency", "#8fc7ee"),
    ("frontend", "#6fa8dc"),
    ("fetch", "#b3d3f0"),
    ("core", "#f2e36b"),
    ("backend", "#f2c14e"),
];
/// Colours of other nodes, in order of their share.
const OTHERS: [&str; 6] = ["#c7b3e5", "#d9c3a5", "#a8d5ba", "#f4b6b6", "#b8c4d9", "#dde5a0"];
/// The colour of time whose node is not known.
const UNKNOWN: &str = "#d0d0d0";
/// Without nodes: least share of the samples in the function itself, its colour.
const HEAT: [(f64, &str, &str); 5] = [
    (0.0, "#fbeec2", "under 1 %"),
    (0.01, "#f9d98c", "1 to 5 %"),
    (0.05, "#f6b656", "5 to 20 %"),
    (0.2, "#ee8440", "20 to 50 %"),
    (0.5, "#dd5a3c", "50 % and more"),
];

/// The colour of a node by its label; `None`: it has none of its own.
pub(in crate::render) fn of_node(label: &str) -> Option<&'static str> {
    let lower = label.to_lowercase();
    NODES.iter().find(|(word, _)| lower.contains(word)).map(|(_, colour)| *colour)
}

/// One line of a legend.
pub(super) struct Entry {
    pub colour: &'static str,
    pub text: String,
}

/// Colours of one graph.
pub(super) struct Colours {
    /// By number of the node; empty: by time.
    nodes: Vec<&'static str>,
}

impl Colours {
    pub(super) fn new(graph: &FlameGraph) -> Self {
        let mut others = OTHERS.iter().cycle();
        let mut colour = |label: &str| -> &'static str {
            if label == FlameGraph::UNKNOWN {
                return UNKNOWN;
            }
            of_node(label).or_else(|| others.next().copied()).unwrap_or(UNKNOWN)
        };
        let nodes = match graph.source {
            Some(_) => graph.nodes.iter().map(|node| colour(&node.label)).collect(),
            None => Vec::new(),
        };
        Self { nodes }
    }

    /// The colour of a frame.
    pub(super) fn of(&self, frame: &Frame) -> &'static str {
        match (frame.parts.first(), self.nodes.is_empty()) {
            (Some((node, _)), false) => self.nodes.get(*node).copied().unwrap_or(UNKNOWN),
            _ => HEAT.iter().rfind(|(least, ..)| frame.own >= *least).map_or(UNKNOWN, |h| h.1),
        }
    }

    /// What the colours stand for.
    pub(super) fn legend(&self, graph: &FlameGraph) -> Vec<Entry> {
        if self.nodes.is_empty() {
            let entry = |(_, colour, text): &(f64, &'static str, &str)| Entry {
                colour,
                text: (*text).to_owned(),
            };
            return HEAT.iter().map(entry).collect();
        }
        let entries = self.nodes.iter().zip(&graph.nodes);
        let text = |share: f64, label: &str| format!("{label} {:.1} %", 100.0 * share);
        entries.map(|(c, n)| Entry { colour: c, text: text(n.share, &n.label) }).collect()
    }

    /// What the legend is about.
    pub(super) fn caption(graph: &FlameGraph) -> String {
        match &graph.source {
            Some(source) => format!("colour: the node that dominates the frame, {source}"),
            None => "colour: share of all samples in the function itself".to_owned(),
        }
    }
}
