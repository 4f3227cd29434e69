//! A comparison as Markdown, for the comment of a pull request.

use super::cells::cells;
use super::code::{Table, tables};
use super::gates;
use crate::documents::diff::Crossing;
use crate::documents::diff::Diff;
use std::fmt::Write as _;

/// The conditions as a list, the rows as a table; `verbose` with those below their errors.
pub fn render(diff: &Diff, verbose: bool) -> String {
    let mut out = String::new();
    for (name, report) in ["A", "B"].iter().zip(&diff.reports) {
        let _ = writeln!(out, "- **{name}**: {}", escaped(report));
    }
    out.push('\n');
    for gate in &diff.gates {
        let mark = match gate.crossing {
            Crossing::Crossed => "❌",
            Crossing::Held => "✅",
            Crossing::Undecided => "❓",
        };
        let _ = writeln!(out, "- {mark} {}", escaped(&gates::sentence(gate, false)));
    }
    let _ = writeln!(out, "\n| | A | B | B − A | |\n|---|--:|--:|--:|---|");
    for row in cells(diff, false) {
        let name = format!("{}{}", "&nbsp;".repeat(row.indent), escaped(&row.name));
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {} | {} |",
            row.a, row.b, row.difference, row.judgement
        );
    }
    for table in tables(diff, false, verbose) {
        out += &code(&table);
    }
    for note in &diff.notes {
        let _ = writeln!(out, "\nNote: {}", escaped(note));
    }
    out
}

fn code(table: &Table) -> String {
    let mut out = format!("\n| {} | A | B | B − A | | parts |\n", table.title);
    out += "|---|--:|--:|--:|---|---|\n";
    for row in &table.rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            escaped(&row.name),
            row.a,
            row.b,
            row.difference,
            row.judgement,
            escaped(&row.parts)
        );
    }
    if !table.left.is_empty() {
        let _ = writeln!(out, "\n{}", table.left);
    }
    out
}

/// Text without what Markdown or HTML read in it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in tma::text::name(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_form_no_table_and_no_tag() {
        assert_eq!(escaped("a|b <script> `x`"), "a\\|b &lt;script&gt; \\`x\\`");
    }
}
