//! Two reports compared, as text.

use super::cells::{Cells, cells};
use super::code::{Table, tables};
use super::gates;
use crate::documents::diff::Diff;
use std::fmt::Write as _;

/// The comparison as text.
pub fn render(diff: &Diff, ascii: bool) -> String {
    let mut out = String::new();
    for (name, report) in ["A", "B"].iter().zip(&diff.reports) {
        let _ = writeln!(out, "{name}: {report}");
    }
    for gate in &diff.gates {
        let _ = writeln!(out, "{}", gates::sentence(gate, ascii));
    }
    for note in &diff.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let rows: Vec<Cells> = cells(diff, ascii);
    let indent = |row: &Cells| format!("{:i$}{}", "", row.name, i = row.indent);
    let width = rows.iter().map(|row| indent(row).chars().count()).max().unwrap_or(4).max(4);
    let _ = writeln!(out, "\n{:width$}  {:>16}  {:>16}  {:>12}", "", "A", "B", "B - A");
    for row in &rows {
        let (name, Cells { a, b, difference, judgement, .. }) = (indent(row), row);
        let line = format!("{name:width$}  {a:>16}  {b:>16}  {difference:>12}  {judgement}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for table in tables(diff, ascii) {
        out += &code(&table);
    }
    out
}

/// A table of functions, or of loops and blocks; names come last, as they may be long.
fn code(table: &Table) -> String {
    let mut out =
        format!("\n{:>16}  {:>16}  {:>12}  {:9}  {}\n", "A", "B", "B - A", "", table.title);
    for row in &table.rows {
        let line = format!(
            "{:>16}  {:>16}  {:>12}  {:9}  {}",
            row.a, row.b, row.difference, row.judgement, row.name
        );
        let _ = writeln!(out, "{}", line.trim_end());
        if !row.parts.is_empty() {
            let _ = writeln!(out, "{:65}{}", "", row.parts);
        }
    }
    if table.left > 0 {
        let _ = writeln!(out, "{:61}{} more (--format json)", "", table.left);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::diff::{DiffRow, Judgement};
    use crate::documents::report::Place;

    #[test]
    fn an_absent_value_is_shown_as_absent() {
        let row = DiffRow {
            id: "X".into(),
            label: "X".into(),
            level: 1,
            a: Some(0.3),
            a_error: None,
            b: None,
            b_error: None,
            difference: None,
            margin: None,
            judgement: Judgement::Absent,
            unit: "ratio".into(),
            place: Place::default(),
        };
        let diff = Diff {
            schema: String::new(),
            reports: ["a.json: true".into(), "b.json: false".into()],
            uarch: Default::default(),
            nodes: vec![row],
            info: vec![],
            software: vec![],
            code: None,
            gates: vec![],
            notes: vec![],
        };
        let text = render(&diff, true);
        assert!(text.contains("absent"), "{text}");
        assert!(text.starts_with("A: a.json: true\nB: b.json: false\n"), "{text}");
    }
}
