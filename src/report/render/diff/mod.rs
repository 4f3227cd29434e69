//! Two reports compared: text, Markdown for the comment of a pull request, JUnit for continuous integration, CSV.
//! `cells` has the cells of their rows.

mod cells;

use crate::documents::diff::row::CodeRow;
use crate::documents::diff::{Crossing, Diff, DiffRow, Gate};
use crate::render::csv::{self, number};
use crate::render::formats::xml;
use crate::render::width::Page;
use cells::{Cells, Table, cells, tables};
use smol_str::SmolStr;
use std::fmt::Write as _;

pub use cells::{gain, place, plain, sentence};

/// The comparison as text; `verbose` shows rows below their errors, too.
pub fn render(diff: &Diff, ascii: bool, verbose: bool, page: Page) -> String {
    let mut out = String::new();
    for (name, report) in ["A", "B"].iter().zip(&diff.reports) {
        let _ = writeln!(out, "{name}: {report}");
    }
    for gate in &diff.gates {
        let _ = writeln!(out, "{}", verdict(gate, ascii));
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
    for Cells { name, indent, a, b, difference, judgement, .. } in rows {
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
            let Cells { a, b, difference, judgement: word, .. } = row;
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

/// The conditions as a list, the rows as a table; `verbose` with those below their errors.
pub fn markdown(diff: &Diff, verbose: bool) -> String {
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
        let _ = writeln!(out, "- {mark} {}", escaped(&verdict(gate, false)));
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
        out += &code_table(&table);
    }
    for note in &diff.notes {
        let _ = writeln!(out, "\nNote: {}", escaped(note));
    }
    out
}

fn code_table(table: &Table) -> String {
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

/// `crossed: time > +5%: +10.0 ± 4.2 %`.
fn verdict(gate: &Gate, ascii: bool) -> String {
    let word = match gate.crossing {
        Crossing::Crossed => "crossed",
        Crossing::Held => "held",
        Crossing::Undecided => "undecided",
    };
    let plus_minus = if ascii { "+-" } else { "±" };
    let margin = gate.margin.map_or(String::new(), |margin| format!(" {plus_minus} {margin:.1}"));
    let unit = if gate.unit.is_empty() { String::new() } else { format!(" {}", gate.unit) };
    let change =
        gate.change.map_or(String::new(), |change| format!(": {change:+.1}{margin}{unit}"));
    let reason = gate.reason.as_ref().map_or(String::new(), |reason| format!("; {reason}"));
    format!("{word}: {}{change}{reason}", gate.condition)
}

/// One test suite; crossed lines are failures, undecided ones errors.
pub fn junit(diff: &Diff) -> String {
    let count = |crossing| diff.gates(crossing).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuite name=\"tdtool diff\" tests=\"{}\" failures=\"{}\" errors=\"{}\">",
        diff.gates.len(),
        count(Crossing::Crossed),
        count(Crossing::Undecided)
    );
    for gate in &diff.gates {
        let name = xml(&gate.condition);
        let text = xml(&verdict(gate, false));
        let of = xml(&diff.reports.join(" → "));
        let case = format!("  <testcase classname=\"{of}\" name=\"{name}\"");
        let _ = match gate.crossing {
            Crossing::Held => writeln!(out, "{case}/>"),
            Crossing::Crossed => failed(&mut out, &case, "failure", &text),
            Crossing::Undecided => failed(&mut out, &case, "error", &text),
        };
    }
    out.push_str("</testsuite>\n");
    out
}

fn failed(out: &mut String, case: &str, what: &str, text: &str) -> std::fmt::Result {
    writeln!(out, "{case}>\n    <{what} message=\"{text}\"/>\n  </testcase>")
}

/// Column names, the first line.
const HEADER: &str = "kind,id,module,start_a,start_b,part,core,scope,a,a_error,b,b_error,difference,margin,judgement,unit";

/// Renders a comparison.
pub fn csv(diff: &Diff) -> String {
    let mut out = format!("{HEADER}\n");
    let plain = [("node", &diff.nodes), ("info", &diff.info), ("software", &diff.software)];
    for (kind, rows) in plain {
        for row in rows {
            let place = &row.place;
            let text = |part: &Option<SmolStr>| part.as_deref().unwrap_or_default().to_owned();
            let begin = [kind.to_owned(), row.id.clone()].into_iter();
            let empty = std::iter::repeat_n(String::new(), 4);
            add(&mut out, begin.chain(empty).chain([text(&place.core), text(&place.scope)]), row);
        }
    }
    let Some(code) = &diff.code else { return out };
    if let Some(row) = &code.program {
        of_code(&mut out, "program", row);
    }
    for (kind, rows) in
        [("function", &code.functions), ("loop", &code.loops), ("block", &code.blocks)]
    {
        rows.iter().for_each(|row| of_code(&mut out, kind, row));
    }
    out
}

fn of_code(out: &mut String, kind: &str, row: &CodeRow) {
    let start = |side: usize| row.start[side].map(|at| at.to_string()).unwrap_or_default();
    let begin = |part: &str| {
        let (id, module) = (row.time.id.clone(), row.module.clone());
        [kind.to_owned(), id, module, start(0), start(1), part.to_owned()]
            .into_iter()
            .chain([String::new(), String::new()])
    };
    add(out, begin(""), &row.time);
    for part in &row.parts {
        add(out, begin(&part.id), part);
    }
}

/// A line: what the row is, and its numbers.
fn add(out: &mut String, begin: impl Iterator<Item = String>, row: &DiffRow) {
    let numbers = [row.a, row.a_error, row.b, row.b_error, row.difference, row.margin];
    let judgement = serde_json::to_value(row.judgement).ok();
    let judgement = judgement.and_then(|value| Some(value.as_str()?.to_owned()));
    let end = [judgement.unwrap_or_default(), row.unit.clone()];
    *out += &csv::line(begin.chain(numbers.map(number)).chain(end));
}

#[cfg(test)]
mod tests {
    use super::{escaped, *};
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

    #[test]
    fn names_form_no_table_and_no_tag() {
        assert_eq!(escaped("a|b <script> `x`"), "a\\|b &lt;script&gt; \\`x\\`");
    }
}
