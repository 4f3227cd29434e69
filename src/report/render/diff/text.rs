//! Two reports compared, as text.

use super::cells::{Cells, cells};
use super::code::{self, Table, tables};
use super::gates;
use crate::documents::diff::Diff;
use crate::render::width::Page;
use std::fmt::Write as _;

/// The comparison as text; `verbose` shows rows below their errors, too.
pub fn render(diff: &Diff, ascii: bool, verbose: bool, page: Page) -> String {
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
    if page.is_below(LEAST) {
        below(&rows, page, &mut out);
        tables(diff, ascii, verbose).iter().for_each(|table| code(table, page, &mut out));
        return page.fitted(out);
    }
    // The judgement is below a row that has no room for it.
    let beside = !page.is_below(width + VALUES + JUDGEMENT);
    let width = page.width().map_or(width, |all| width.min(all - VALUES));
    let _ = writeln!(out, "\n{:width$}  {:>16}  {:>16}  {:>12}", "", "A", "B", "B - A");
    for row in &rows {
        let (name, Cells { a, b, difference, judgement, .. }) = (indent(row), row);
        let name = page.cut(&name, width);
        let gap = match beside {
            true => "  ".to_owned(),
            false if judgement.is_empty() => String::new(),
            false => format!("\n{:1$}", "", row.indent + 2),
        };
        let line = format!("{name:width$}  {a:>16}  {b:>16}  {difference:>12}{gap}{judgement}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    tables(diff, ascii, verbose).iter().for_each(|table| code(table, page, &mut out));
    page.fitted(out)
}

/// Columns of both values and their difference, and of the longest judgement.
const VALUES: usize = 50;
const JUDGEMENT: usize = 25;
/// Fewest columns for a table; on narrower pages values are below the names.
const LEAST: usize = VALUES + 20;

/// Each row on lines of its own.
fn below(rows: &[Cells], page: Page, out: &mut String) {
    out.push('\n');
    for Cells { name, indent, a, b, difference, judgement } in rows {
        let most = page.width().map_or(usize::MAX, |width| width.saturating_sub(*indent));
        let _ = writeln!(out, "{:indent$}{}", "", page.cut(name, most));
        let values = format!("{:indent$}  A {a}, B {b}, {difference}", "");
        let _ = writeln!(out, "{}", values.trim_end_matches([' ', ',']));
        if !judgement.is_empty() {
            let _ = writeln!(out, "{:indent$}  {judgement}", "");
        }
    }
}

/// Columns of the values of code, before its judgement.
const BEFORE: usize = 52;

/// A table of functions, or of loops and blocks; names come last, as they may be long, or on narrow pages above.
fn code(table: &Table, page: Page, out: &mut String) {
    let judgement = table.rows.iter().map(|row| row.judgement.len()).max().unwrap_or(0);
    let before = BEFORE + judgement;
    if page.is_below(before + 24) {
        let _ = writeln!(out, "\n{}: A, B, B - A", table.title);
        for row in &table.rows {
            let most = page.width().unwrap_or(usize::MAX);
            let _ = writeln!(out, "{}", page.cut(&row.name, most));
            let values = format!("  {}, {}, {}  {}", row.a, row.b, row.difference, row.judgement);
            let _ = writeln!(out, "{}", values.trim_end());
            if !row.parts.is_empty() {
                let _ = writeln!(out, "    {}", row.parts);
            }
        }
    } else {
        let line = format!("{:>16}  {:>16}  {:>12}  {:judgement$}  ", "A", "B", "B - A", "");
        let _ = writeln!(out, "\n{line}{}", table.title);
        for row in &table.rows {
            let code::Cells { a, b, difference, judgement: word, .. } = row;
            let name = page.cut(&row.name, page.width().map_or(usize::MAX, |all| all - before));
            let values = format!("{a:>16}  {b:>16}  {difference:>12}");
            let _ = writeln!(out, "{values}  {word:judgement$}  {name}");
            if !row.parts.is_empty() {
                let _ = writeln!(out, "{:1$}{2}", "", before + 4, row.parts);
            }
        }
    }
    if !table.left.is_empty() {
        let _ = writeln!(out, "{}: -v", table.left);
    }
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
            is_single: false,
            nodes: vec![row],
            info: vec![],
            software: vec![],
            code: None,
            false_findings: None,
            gates: vec![],
            notes: vec![],
        };
        let text = render(&diff, true, false, Page::default());
        assert!(text.contains("absent"), "{text}");
        assert!(text.starts_with("A: a.json: true\nB: b.json: false\n"), "{text}");
    }
}
