//! Adds the texts of `events/nodes.toml` to findings.

use crate::documents::{Finding, FindingKind};
use tma::tables::{Table, texts};

/// Fills meaning, causes and next step of the findings that name a node.
pub(super) fn advise(table: &Table, findings: &mut [Finding]) {
    for finding in findings {
        if !matches!(finding.kind, FindingKind::Bottleneck | FindingKind::Undecided) {
            continue;
        }
        let Some(id) = &finding.node else { continue };
        let Some(text) = texts::node(table, id) else { continue };
        finding.meaning = Some(text.meaning);
        finding.causes = text.causes;
        finding.next = text.next;
    }
}
