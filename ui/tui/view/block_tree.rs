//! The nodes of a measured block's top-down tree.

use crate::tui::tone::Tone;
use bench::Node;

/// Deepest chain of parents that is followed; a document may have a cycle.
const DEEPEST: usize = 8;

/// How many nodes are above `node`.
pub fn depth(nodes: &[Node], node: &Node) -> usize {
    let above = |id: &str| nodes.iter().find(|n| n.id == id).and_then(|n| n.parent.as_deref());
    std::iter::successors(node.parent.as_deref(), |id| above(id)).take(DEEPEST).count()
}

/// The node's share of the slots if counted, its bound if known, and a mark if it explains the time.
pub fn node_text(node: &Node) -> (String, Tone) {
    let (share, tone) = match (node.share.or(node.low), node.bound) {
        (None, Some(_)) => (None, Tone::Plain),
        _ => {
            let (text, tone) = share_text(node);
            (Some(text), tone)
        }
    };
    let bound = node.bound.map(|b| format!("{b:.2} cycles"));
    let parts: Vec<String> = share.into_iter().chain(bound).collect();
    let mark = if node.is_verdict { " <- explains the time" } else { "" };
    let tone = if node.is_verdict { Tone::Bold } else { tone };
    ((parts.join(", ") + mark).trim_start().to_owned(), tone)
}

fn share_text(node: &Node) -> (String, Tone) {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    match (node.share, node.low, node.high) {
        (Some(share), Some(low), Some(high)) if low < high => {
            let range = format!("{} ({} to {})", percent(share), percent(low), percent(high));
            (range + " of slots", Tone::Plain)
        }
        (Some(share), ..) => (percent(share) + " of slots", Tone::Plain),
        (None, Some(low), Some(high)) => {
            (format!("between {} and {} of slots", percent(low), percent(high)), Tone::Plain)
        }
        _ => {
            let why = node.reason.as_deref().unwrap_or("no reason");
            let text = if why.starts_with("not measured") {
                why.to_owned()
            } else {
                format!("not measured: {why}")
            };
            (text, Tone::Dim)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_shown_after_the_share_and_the_verdict_is_marked() {
        let bound = Node { bound: Some(3.0), is_verdict: true, ..Node::default() };
        assert_eq!(node_text(&bound).0, "3.00 cycles <- explains the time");
        let both = Node { share: Some(0.25), is_verdict: false, ..bound };
        assert_eq!(node_text(&both).0, "25.0 % of slots, 3.00 cycles");
        let none = Node { reason: Some("no PMU".to_owned()), ..Node::default() };
        assert_eq!(node_text(&none).0, "not measured: no PMU");
    }
}
