//! Chooses the colour of a frame, by the node that dominates it, else by the time of its function; draws the
//! legend.

use crate::documents::flame::{Compared, FlameGraph, Frame};

/// Colours of nodes, told apart by colour-blind readers too: M. Okabe, K. Ito, "Color Universal Design" (2008),
/// lightened for dark text. A word in the node's name, and its colour.
const NODES: [(&str, &str); 10] = [
    ("retiring", "#66c2a4"),
    ("bad", "#e8a0c4"),
    ("mispredict", "#e8a0c4"),
    ("memory", "#f0a35e"),
    ("latency", "#8fc7ee"),
    ("frontend", "#6fa8dc"),
    ("fetch", "#b3d3f0"),
    ("core", "#f2e36b"),
    ("backend", "#f2c14e"),
    ("unexplained", "#b9bcc2"),
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

/// Changes: least part of A's time, colours of lost and gained time (ColorBrewer's RdBu, which colour-blind readers
/// tell apart), and the text.
const CHANGES: [(f64, &str, &str, &str); 3] = [
    (0.0, "#d1e5f0", "#fddbc7", "up to 1 %"),
    (0.01, "#92c5de", "#f4a582", "1 to 5 %"),
    (0.05, "#4393c3", "#d6604d", "over 5 %"),
];
/// The colour of what did not change.
const UNCHANGED: &str = "#efefef";

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
    /// Time of A in a differential graph.
    before: Option<f64>,
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
        Self { nodes, before: graph.compared.as_ref().map(|compared| compared.totals[0]) }
    }

    /// The colour of a frame.
    pub(super) fn of(&self, frame: &Frame) -> &'static str {
        if let Some((change, before)) = frame.change.as_ref().zip(self.before) {
            return changed(change.own_beyond_margin() / before);
        }
        match (frame.parts.first(), self.nodes.is_empty()) {
            (Some((node, _)), false) => self.nodes.get(*node).copied().unwrap_or(UNKNOWN),
            _ => HEAT.iter().rfind(|(least, ..)| frame.own >= *least).map_or(UNKNOWN, |h| h.1),
        }
    }

    /// Meaning of the colours.
    pub(super) fn legend(&self, graph: &FlameGraph) -> Vec<Entry> {
        if self.before.is_some() {
            return changes();
        }
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

    /// Title of the legend.
    pub(super) fn caption(graph: &FlameGraph) -> String {
        if let Some(Compared { unit, .. }) = &graph.compared {
            let what = if unit == "ratio" { "share" } else { "time" };
            return format!(
                "colour: {what} that the function itself gained or lost, of all of A's"
            );
        }
        match &graph.source {
            Some(source) => format!("colour: the node that dominates the frame, {source}"),
            None => "colour: share of all samples in the function itself".to_owned(),
        }
    }
}

/// The colour of a change in parts of A's time.
fn changed(change: f64) -> &'static str {
    if change == 0.0 {
        return UNCHANGED;
    }
    let step = CHANGES.iter().rfind(|(least, ..)| change.abs() >= *least);
    step.map_or(UNCHANGED, |(_, less, more, _)| if change < 0.0 { less } else { more })
}

/// The legend of changes, from the largest loss of time to the largest gain.
fn changes() -> Vec<Entry> {
    let less = CHANGES.iter().rev().map(|(_, colour, _, text)| (*colour, format!("less, {text}")));
    let same = (UNCHANGED, "within the sampling error".to_owned());
    let more = CHANGES.iter().map(|(_, _, colour, text)| (*colour, format!("more, {text}")));
    let all = less.chain(std::iter::once(same)).chain(more);
    all.map(|(colour, text)| Entry { colour, text }).collect()
}
