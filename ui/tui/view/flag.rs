//! Why a node is flagged, or not.

use crate::tui::state::State;
use report::documents::NodeRow;

/// Deepest chain of parents that is followed; a document may have a cycle.
const DEEPEST: usize = 32;

/// The reason; `threshold` is the node's, if it has one.
pub fn why_flagged(state: &State, node: &NodeRow, threshold: Option<&str>) -> String {
    let over = threshold.map(|o| format!(" ({o})")).unwrap_or_default();
    if node.value.is_none() {
        return format!("unknown: the node has no value{over}");
    }
    match (node.flagged, node.over) {
        (true, _) if node.bottleneck => {
            format!("the bottleneck: over its threshold{over}, and no node below it is flagged")
        }
        (true, _) if node.parent.is_some() => {
            format!("over its threshold{over}, as are all nodes above it")
        }
        (true, _) => format!("over its threshold{over}"),
        (false, Some(false)) => format!("no: not over its threshold{over}"),
        (false, None) => "no: the vendor gives no threshold".into(),
        (false, Some(true)) if node.mismeasured => "no: the value is impossible".into(),
        (false, Some(true)) => match unflagged_above(state, node) {
            Some(above) => format!("no: over its threshold{over}, but {above} above it is not"),
            None => format!("no: over its threshold{over}, but by less than its error"),
        },
    }
}

/// The nearest node above that is not flagged.
fn unflagged_above(state: &State, node: &NodeRow) -> Option<String> {
    let mut now = node;
    for _ in 0..DEEPEST {
        now = state.tree.by_id(now.parent.as_deref()?)?;
        if !now.flagged {
            return Some(now.label.to_string());
        }
    }
    None
}
