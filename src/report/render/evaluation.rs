//! Node values for counts from a file: as CSV, and the remarks about them.

use crate::documents::tables::{Evaluation, Row};
use std::fmt::Write as _;

/// Remarks of a kind that are listed before the rest is only counted.
const LISTED: usize = 12;

/// Rows `trial,node,value,over` after their heading.
pub fn csv(evaluation: &Evaluation) -> String {
    let mut out = String::from("trial,node,value,over\n");
    for Row { trial, node, value, over } in &evaluation.rows {
        let value = value.map(|v| v.to_string()).unwrap_or_default();
        let over = over.map_or("", |over| if over { "1" } else { "0" });
        let _ = writeln!(out, "{trial},{node},{value},{over}");
    }
    out
}

/// Unknown events, and nodes without a value or with an undefined one; empty if there are none.
pub fn remarks(evaluation: &Evaluation) -> String {
    let kinds = [
        ("events not in the table", &evaluation.unknown),
        ("without a value", &evaluation.missing),
        ("undefined, printed as 0 as perf and toplev do", &evaluation.undefined),
    ];
    let mut out = String::new();
    for (what, list) in kinds.into_iter().filter(|(_, list)| !list.is_empty()) {
        let _ = writeln!(out, "{}: {what}:", evaluation.table);
        for line in list.iter().take(LISTED) {
            let _ = writeln!(out, "  {line}");
        }
        if list.len() > LISTED {
            let _ = writeln!(out, "  … and {} more", list.len() - LISTED);
        }
    }
    out
}
