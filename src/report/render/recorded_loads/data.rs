//! Variables and members of structures as text.

use super::cells::{columns, cycles, heading, level_cells, more};
use crate::documents::loads::{EventRow, FieldRow, VariableKind, VariableRow};
use crate::render::width::{Cell, Page, Rows, Subject, Worth};
use std::fmt::Write as _;

/// The cells of a row; of its heading those that it is given.
fn cells(texts: [&str; 3], levels: Vec<Cell>, mean: &str) -> Vec<Cell> {
    let [share, loads, stores] = texts;
    let mut cells = vec![
        (Worth::All, format!("{share:>8}")),
        (Worth::Some, format!("  {loads:>7}")),
        (Worth::Some, format!("  {stores:>7}")),
    ];
    cells.extend(levels);
    cells.push((Worth::Some, format!("  {mean:>12}")));
    cells
}

const HEADS: [&str; 3] = ["share", "loads", "stores"];

fn numbers(share: f64, loads: u64, stores: u64) -> [String; 3] {
    [format!("{:.1} %", 100.0 * share), loads.to_string(), stores.to_string()]
}

pub(super) fn variables(
    event: &EventRow,
    all: &[VariableRow],
    Rows { most, page }: Rows,
    out: &mut String,
) {
    let all: Vec<&VariableRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.iter().all(|row| row.kind == VariableKind::Unknown) {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    out.push('\n');
    heading(out, page, &cells(HEADS, level_cells(&columns, None), "cycles: mean"), "data");
    let below = if page.is_below(80) { 4 } else { 28 };
    for one in all.iter().take(most) {
        let size = one.size.map_or(String::new(), |size| format!(" ({size} bytes)"));
        let of = match one.module.rsplit('/').next() {
            Some(name) if !name.is_empty() => format!(" of {name}"),
            _ => String::new(),
        };
        let numbers = numbers(one.share, one.loads, one.stores);
        let levels = level_cells(&columns, Some(&one.levels));
        let cells =
            cells(numbers.each_ref().map(String::as_str), levels, &cycles(one.latency_mean));
        let after = format!("{size}{of}");
        page.row(out, &cells, Subject { place: "", name: &one.name, after: &after });
        if one.kind == VariableKind::Heap {
            let _ =
                writeln!(out, "{:below$}- which allocation is not known: a recording has none", "");
        }
        members(one, page, below, out);
    }
    more(all.len(), most, out);
}

/// The members of a variable, if it has any.
fn members(of: &VariableRow, page: Page, below: usize, out: &mut String) {
    let all = of.members.iter().filter(|member| member.name != of.name);
    for one in all.clone().take(MOST_MEMBERS) {
        let [share, loads, stores] = numbers(one.share, one.loads, one.stores);
        let cells = [
            (Worth::All, format!("{share:>8}")),
            (Worth::Some, format!("  {loads:>7}")),
            (Worth::Some, format!("  {stores:>7}")),
        ];
        let after = format!(", mean {} cycles", cycles(one.latency_mean));
        page.row(out, &cells, Subject { place: "-", name: &one.name, after: &after });
    }
    if all.clone().count() > MOST_MEMBERS {
        let _ = writeln!(out, "{:below$}- {} more", "", all.count() - MOST_MEMBERS);
    }
}

/// Members shown of a variable.
const MOST_MEMBERS: usize = 6;

/// Members of structures, with the structure that they are in.
pub(super) fn fields(
    event: &EventRow,
    all: &[FieldRow],
    Rows { most, page }: Rows,
    out: &mut String,
) {
    let all: Vec<&FieldRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    let cells = |texts: [&str; 3], levels: Vec<Cell>, mean: &str, offset: &str| {
        let mut cells = cells(texts, levels, mean);
        cells.push((Worth::Some, format!("  {offset:>6}")));
        cells
    };
    let heads = cells(HEADS, level_cells(&columns, None), "cycles: mean", "offset");
    out.push('\n');
    heading(out, page, &heads, "member of a structure, by the operands");
    for one in all.iter().take(most) {
        let numbers = numbers(one.share, one.loads, one.stores);
        let cells = cells(
            numbers.each_ref().map(String::as_str),
            level_cells(&columns, Some(&one.levels)),
            &cycles(one.latency_mean),
            &one.offset.to_string(),
        );
        let after = format!(": {}", one.member);
        page.row(out, &cells, Subject { place: "", name: &one.of, after: &after });
    }
    more(all.len(), most, out);
}
