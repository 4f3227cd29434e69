//! The rows of a comparison, and the code, as cells of text.

use crate::documents::diff::row::{CodeRow, Matched};
use crate::documents::diff::{Diff, DiffRow, Judgement};
use crate::documents::estimate::Bottleneck;
use crate::format;

/// Rows that are shown of a table.
const MOST: usize = 15;
/// Parts that are shown of a row.
const PARTS: usize = 3;

/// Functions, or loops and blocks.
pub(super) struct Table {
    pub title: &'static str,
    pub rows: Vec<Cells>,
    /// Number of hidden rows, and of those below their errors; empty of none.
    pub left: String,
}

/// One row.
#[derive(Default)]
pub(super) struct Cells {
    pub name: String,
    /// Blanks before the name: two for each level below the first.
    pub indent: usize,
    pub a: String,
    pub b: String,
    pub difference: String,
    pub judgement: &'static str,
    /// Parts of the time of code that changed beyond their intervals.
    pub parts: String,
}

/// The tables that have rows; `verbose` with all of them.
pub(super) fn tables(diff: &Diff, ascii: bool, verbose: bool) -> Vec<Table> {
    let Some(code) = &diff.code else { return Vec::new() };
    let functions = code.program.iter().chain(&code.functions);
    let functions = functions.map(|row| (row, row.time.label.clone())).collect();
    let loops = code.loops.iter().map(|row| (row, "loop"));
    let pieces = loops.chain(code.blocks.iter().map(|row| (row, "block")));
    let mut pieces: Vec<(&CodeRow, String)> = pieces
        .map(|(row, kind)| (row, format!("{} {}", row.time.label, place(row, kind))))
        .collect();
    pieces.sort_by(|x, y| y.0.change().total_cmp(&x.0.change()));
    let table = |title, rows: Vec<(&CodeRow, String)>| {
        let (mut shown, mut hidden): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|(row, _)| verbose || !code.is_minor(&row.time));
        let minor = hidden.len();
        hidden.extend(shown.split_off(shown.len().min(if verbose { usize::MAX } else { MOST })));
        Table {
            title,
            left: left(&hidden, minor),
            rows: shown.into_iter().map(|(row, name)| code_cells(row, name, ascii)).collect(),
        }
    };
    let all = [table("function", functions), table("loop or block", pieces)];
    all.into_iter().filter(|table| !table.rows.is_empty() || !table.left.is_empty()).collect()
}

/// `48 more, 38 of them below the error (61.2 ms in A, 58.0 ms in B)`: the first of the hidden rows are.
fn left(hidden: &[(&CodeRow, String)], minor: usize) -> String {
    let Some((first, _)) = hidden.first() else { return String::new() };
    let sum = |of: fn(&DiffRow) -> Option<f64>| {
        let all = hidden[..minor].iter().filter_map(|(row, _)| of(&row.time));
        Some(amount(&first.time, all.reduce(|sum, value| sum + value)?, None, false))
    };
    let sides = [sum(|row| row.a).map(|a| a + " in A"), sum(|row| row.b).map(|b| b + " in B")];
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    let below = format!("below the error ({})", sides.join(", "));
    match hidden.len() {
        all if minor == 0 => format!("{all} more"),
        all if minor == all => format!("{all} more {below}"),
        all => format!("{all} more, {minor} of them {below}"),
    }
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

fn code_cells(row: &CodeRow, name: String, ascii: bool) -> Cells {
    let time = &row.time;
    let value = |value: Option<f64>, error| match value {
        Some(value) => amount(time, value, error, ascii),
        None => "absent".to_owned(),
    };
    let difference = time.difference.map_or(String::new(), |d| change(time, d));
    let judgement = match (time.judgement, time.a, time.b) {
        (Judgement::More, ..) => "more in B",
        (Judgement::Less, ..) => "less in B",
        (Judgement::OneRun, ..) => in_one_run(time),
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
        ..Cells::default()
    }
}

/// A change that only single runs show.
fn in_one_run(row: &DiffRow) -> &'static str {
    let is_more = row.difference.is_some_and(|difference| difference > 0.0);
    if is_more { "more in one run" } else { "less in one run" }
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

/// Change in a sentence.
pub fn sentence(row: &CodeRow) -> String {
    let time = &row.time;
    let value = |value: f64, error| amount(time, value, error, false);
    let mut text = match (time.a, time.b, time.difference) {
        (Some(a), Some(b), Some(difference)) => format!(
            "{} in A, {} in B: {}{}.",
            value(a, time.a_error),
            value(b, time.b_error),
            change(time, difference),
            match time.judgement {
                Judgement::More | Judgement::Less => "",
                Judgement::OneRun => ", of one run: run-to-run variation is unknown",
                _ => ", within the errors",
            }
        ),
        (Some(a), ..) => format!("{} in A, and not in B.", value(a, time.a_error)),
        (None, Some(b), _) => format!("{} in B, and not in A.", value(b, time.b_error)),
        _ => "not measured.".to_owned(),
    };
    let parts = parts(row);
    if !parts.is_empty() {
        text += &format!(" {parts}.");
    }
    let names = row.bottleneck.each_ref().map(|of| of.map(Bottleneck::words));
    if let [Some(a), Some(b)] = names {
        text += &match a == b {
            true => format!(" Bottleneck: {a} in both."),
            false => format!(" Bottleneck: {a} in A, {b} in B."),
        };
    }
    if let ([Some(a), Some(b)], [of_a, of_b]) = (row.cycles_per_entry, row.entries) {
        let entries = |entries: Option<f64>| entries.map_or("?".to_owned(), format::count);
        let (of_a, of_b) = (entries(of_a), entries(of_b));
        let [a, b] = [a, b].map(format::cycles);
        text += &format!(" Cycles an entry: {a} and {b}; entries: {of_a} and {of_b}.");
    }
    text
}

/// `-380 ms`; the whole time of a row that only one side has.
pub fn gain(row: &CodeRow) -> String {
    match row.time.difference {
        Some(difference) => change(&row.time, difference),
        None if row.time.a.is_some() => "only in A".to_owned(),
        None => "only in B".to_owned(),
    }
}

/// `500.0 ms`, without its error; `-` where there is none.
pub fn plain(row: &CodeRow, value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| amount(&row.time, value, None, false))
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

/// The rows that have a value.
pub(super) fn cells(diff: &Diff, ascii: bool) -> Vec<Cells> {
    let all = diff.nodes.iter().chain(&diff.info).chain(&diff.software);
    all.filter(|r| r.a.is_some() || r.b.is_some()).map(|r| of(r, ascii)).collect()
}

fn of(r: &DiffRow, ascii: bool) -> Cells {
    let place = r.place.title();
    let place = if place.is_empty() { place } else { format!(" ({place})") };
    let is_share = r.level > 0;
    let difference = match (r.difference, is_share) {
        (None, _) => String::new(),
        (Some(d), true) => format!("{:+.1} points", 100.0 * d),
        (Some(d), false) => format!("{}{}", if d >= 0.0 { "+" } else { "" }, format::number(d)),
    };
    let plus_minus = if ascii { "+-" } else { "±" };
    let cell = |value: Option<f64>, error: Option<f64>| match (value, is_share) {
        (None, _) => "absent".to_owned(),
        (Some(_), true) => format::share(value, error).replace('±', plus_minus),
        (Some(v), false) => match error {
            Some(error) => format!("{} {plus_minus} {}", format::number(v), format::number(error)),
            None => format::number(v),
        },
    };
    Cells {
        name: format!("{}{place}", r.label),
        indent: 2 * r.level.saturating_sub(1) as usize,
        a: cell(r.a, r.a_error),
        b: cell(r.b, r.b_error),
        difference,
        judgement: match r.judgement {
            Judgement::More => "more in B",
            Judgement::Less => "less in B",
            Judgement::OneRun => in_one_run(r),
            Judgement::Same => "same within the errors",
            Judgement::Unjudged => "not judged: no errors",
            Judgement::Absent => "",
        },
        ..Cells::default()
    }
}
