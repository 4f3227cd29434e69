//! Evaluation and flags → findings of the report, in words.

use super::report::{Finding, FindingKind, Place};
use tma::tables::{NodeId, Table};
use tma::tree::{Evaluation, Flags, Undecided};

/// The findings that follow from the flags, of the nodes that are `shown`.
pub(super) fn findings(
    table: &Table,
    evaluation: &Evaluation,
    flags: &Flags,
    shown: &[NodeId],
    place: &Place,
) -> Vec<Finding> {
    if shown.iter().all(|&n| evaluation.nodes[usize::from(n)].quantity.value.is_err()) {
        return Vec::new();
    }
    let words = Words { table, evaluation, place };
    let mut found = Vec::new();
    found.extend(flags.bottleneck().map(|n| words.bottleneck(n, &flags.path)));
    found.extend(flags.undecided.iter().flat_map(|undecided| words.undecided(undecided)));
    if found.is_empty() {
        let text = "No node is over its threshold: no single bottleneck stands out.".to_owned();
        found.push(words.finding(FindingKind::Nothing, None, text));
    }
    let mismeasured = shown.iter().filter(|&&n| flags.mismeasured[usize::from(n)]);
    found.extend(mismeasured.map(|&n| words.mismeasured(n)));
    found
}

/// Words of a finding's text.
struct Words<'a> {
    table: &'a Table,
    evaluation: &'a Evaluation,
    place: &'a Place,
}

impl Words<'_> {
    fn bottleneck(&self, n: NodeId, path: &[NodeId]) -> Finding {
        let path: Vec<&str> = path.iter().map(|&p| self.label(p)).collect();
        let text = format!("The bottleneck is {}, {}.", path.join(" > "), self.percent(n));
        self.finding(FindingKind::Bottleneck, Some(n), text)
    }

    /// One finding for each of the two.
    fn undecided(&self, undecided: &Undecided) -> [Finding; 2] {
        let (a, b) = (undecided.first, undecided.second);
        let text = format!(
            "Undecided between {} ({}) and {} ({}): they differ by at most {} points.",
            self.label(a),
            self.percent(a),
            self.label(b),
            self.percent(b),
            crate::format::at_most_points(undecided.margin)
        );
        let other = format!("{}, {}.", self.label(b), self.percent(b));
        [(a, text), (b, other)].map(|(n, text)| self.finding(FindingKind::Undecided, Some(n), text))
    }

    fn mismeasured(&self, n: NodeId) -> Finding {
        let text = format!(
            "{} is mismeasured: {} is outside -5..105 %. Multiplexing, a short run or a \
             faulty event made its counts inconsistent.",
            self.label(n),
            self.percent(n)
        );
        let next = "Measure longer, restrict --nodes, or use --no-multiplex.".to_owned();
        Finding { next: Some(next), ..self.finding(FindingKind::Mismeasured, Some(n), text) }
    }

    fn label(&self, n: NodeId) -> &str {
        &self.table.nodes[usize::from(n)].label
    }

    fn percent(&self, n: NodeId) -> String {
        let quantity = &self.evaluation.nodes[usize::from(n)].quantity;
        crate::format::share(quantity.get(), quantity.error.as_ref().ok().copied())
    }

    fn finding(&self, kind: FindingKind, n: Option<NodeId>, text: String) -> Finding {
        Finding {
            kind,
            node: n.map(|n| self.table.nodes[usize::from(n)].id.clone()),
            text,
            meaning: None,
            causes: None,
            next: None,
            place: self.place.clone(),
        }
    }
}
