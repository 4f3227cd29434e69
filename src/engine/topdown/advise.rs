//! Adds the texts of `events/nodes.toml` to findings.

use report::documents::{Finding, FindingKind};
use tma::tables::Table;
use tma::tables::texts::Texts;

/// Fills meaning, causes and next step of the findings that name a node.
pub(super) fn advise(texts: Texts, table: &Table, findings: &mut [Finding]) {
    for finding in findings {
        if !matches!(finding.kind, FindingKind::Bottleneck | FindingKind::Undecided) {
            continue;
        }
        let Some(id) = &finding.node else { continue };
        let Some(text) = texts.node(table, id) else { continue };
        finding.meaning = Some(text.meaning.to_owned());
        finding.causes = text.causes.map(str::to_owned);
        finding.next = text.next.map(str::to_owned);
    }
}
