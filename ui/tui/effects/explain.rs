//! What the tables say of the nodes of a report.

use crate::tui::state::{Explanation, Explanations};
use engine::documents::Report;
use std::collections::HashMap;
use std::sync::Arc;
use tma::tables::Library;

/// The explanations of all nodes of the tables that the report uses.
pub fn explain(library: &Library, report: &Report) -> Explanations {
    let mut all = HashMap::new();
    for name in report.uarch.split('+').filter(|n| !n.is_empty()) {
        // A report of a table that is not here any more has fewer words.
        let Ok(table) = library.load(name) else { continue };
        for (_, node) in table.tree() {
            let text = library.texts().node(&table, &node.id);
            let explanation = Explanation {
                meaning: text.map(|t| t.meaning.to_owned()).filter(|m| !m.is_empty()),
                causes: text.and_then(|t| t.causes).map(str::to_owned),
                next: text.and_then(|t| t.next).map(str::to_owned),
                formula: node.spec.formula.clone(),
                over: node.spec.over.clone(),
            };
            all.insert((name.to_owned(), node.id.clone()), explanation);
        }
    }
    Arc::new(all)
}
