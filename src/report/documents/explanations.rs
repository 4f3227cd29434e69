//! Explanations of a report's nodes by the tables: texts, formula and threshold.

use super::report::Report;
use std::collections::HashMap;
use tma::tables::Library;

/// Explanation of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Meaning of the node.
    pub meaning: Option<String>,
    /// Usual causes of a high value.
    pub causes: Option<String>,
    /// Next step.
    pub next: Option<String>,
    /// Its formula.
    pub formula: String,
    /// Its threshold.
    pub over: Option<String>,
}

/// Explanations by table and node.
pub type Explanations = HashMap<(String, String), Explanation>;

/// The explanations of all nodes of the tables that `report` uses. A table that `library` lacks has
/// none.
pub fn explain(library: &Library, report: &Report) -> Explanations {
    let mut all = Explanations::new();
    for name in report.uarch.split('+').filter(|n| !n.is_empty()) {
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
            all.insert((name.to_owned(), node.id.to_string()), explanation);
        }
    }
    all
}
