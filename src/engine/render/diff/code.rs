//! The code of a comparison as cells of text.

use crate::documents::diff::code::{CodeRow, Matched};
use crate::documents::diff::{Diff, DiffRow, Judgement};
use crate::format;

/// Rows that are shown of a table.
const MOST: usize = 15;
/// Parts that are shown of a row.
const PARTS: usize = 3;

/// Functions, or loops and blocks.
pub(super) struct Table {
    pub title: &'static str,
    pub rows: Vec<Cells>,
    /// Rows that are not shown.
    pub left: usize,
}

/// One row.
pub(super) struct Cells {
    pub name: String,
    pub a: String,
    pub b: String,
    pub difference: String,
    pub judgement: &'static str,
    /// Parts of its time that changed beyond their intervals.
    pub parts: String,
}

/// The tables that have rows.
pub(super) fn tables(diff: &Diff, ascii: bool) -> Vec<Table> {
    let Some(code) = &diff.code else { return Vec::new() };
    let functions: Vec<&CodeRow> = code.program.iter().chain(&code.functions).collect();
    let mut pieces: Vec<(&CodeRow, &str)> = code.loops.iter().map(|row| (row, "loop")).collect();
    pieces.extend(code.blocks.iter().map(|row| (row, "block")));
    pieces.sort_by(|x, y| size(y.0).total_cmp(&size(x.0)));
    let table = |title, rows: Vec<Cells>| {
        let left = rows.len().saturating_sub(MOST);
        Table { title, rows: rows.into_iter().take(MOST).collect(), left }
    };
    let own = |row: &&CodeRow| cells(row, row.time.label.clone(), ascii);
    let within = |(row, kind): &(&CodeRow, &str)| {
        cells(row, format!("{} {}", row.time.label, place(row, kind)), ascii)
    };
    let all = [
        table("function", functions.iter().map(own).collect()),
        table("loop or block", pieces.iter().map(within).collect()),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// How much a row gains or loses; of one that only one side has, all.
fn size(row: &CodeRow) -> f64 {
    row.time.difference.or(row.time.a).or(row.time.b).unwrap_or(0.0).abs()
}

/// `loop 0x1140 -> 0x1180`: where it is in A, and in B.
pub fn place(row: &CodeRow, kind: &str) -> String {
    let how = match row.matched {
        Matched::Mnemonics => ", other operands",
        Matched::Line => ", by source line",
        _ => "",
    };
    match (&row.start[0], &row.start[1]) {
        (Some(a), Some(b)) if a == b => format!("{kind} {a}{how}"),
        (Some(a), Some(b)) => format!("{kind} {a} -> {b}{how}"),
        (Some(one), None) | (None, Some(one)) => format!("{kind} {one}"),
        (None, None) => kind.to_owned(),
    }
}

fn cells(row: &CodeRow, name: String, ascii: bool) -> Cells {
    let time = &row.time;
    let value = |value: Option<f64>, error| match value {
        Some(value) => amount(time, value, error, ascii),
        None => "absent".to_owned(),
    };
    let difference = time.difference.map_or(String::new(), |d| change(time, d));
    let judgement = match (time.judgement, time.a, time.b) {
        (Judgement::More, ..) => "more in B",
        (Judgement::Less, ..) => "less in B",
        (Judgement::Same, ..) => "same",
        (Judgement::Absent, Some(_), None) => "only in A",
        (Judgement::Absent, None, Some(_)) => "only in B",
        _ => "",
    };
    Cells {
        name,
        a: value(time.a, time.a_error),
        b: value(time.b, time.b_error),
        difference,
        judgement,
        parts: parts(row),
    }
}

/// `Memory Bound -380 ms, Core Bound -30.1 ms`: the parts that changed beyond their intervals.
pub(super) fn parts(row: &CodeRow) -> String {
    let changed = row.parts.iter().filter(|part| part.is_judged());
    let text = |part: &DiffRow| {
        let difference = part.difference.unwrap_or(0.0);
        format!("{} {}", part.label, change(part, difference))
    };
    changed.take(PARTS).map(text).collect::<Vec<_>>().join(", ")
}

fn amount(row: &DiffRow, value: f64, error: Option<f64>, ascii: bool) -> String {
    let plus_minus = if ascii { "+-" } else { "±" };
    match (row.unit.as_str(), error) {
        ("ratio", error) => format::share(Some(value), error).replace('±', plus_minus),
        (unit, Some(error)) => format!("{value:.1} {plus_minus}{error:.1} {unit}"),
        (unit, None) => format!("{value:.1} {unit}"),
    }
}

fn change(row: &DiffRow, difference: f64) -> String {
    match row.unit.as_str() {
        "ratio" => format!("{:+.1} points", 100.0 * difference),
        unit => format!("{difference:+.1} {unit}"),
    }
}
