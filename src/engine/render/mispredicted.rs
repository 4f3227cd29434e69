//! Modelled mispredictions as text.

use super::width::{Cell, Page, Subject, Worth};
use crate::documents::count::{BranchRow, Count};
use profile::symbols::demangle::demangle_short;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Rows of branches in text, and of those that the model says nothing of.
const MOST: usize = 40;

/// The branches with modelled mispredictions, most first; then those of which none are known.
pub(super) fn branches(document: &Count, page: Page, out: &mut String) {
    let with = |row: &'_ BranchRow| row.mispredicted.as_ref().is_some_and(|m| m.high > 0.0);
    let mut rows: Vec<&BranchRow> = document.branches.iter().filter(|row| with(row)).collect();
    let is_unknown =
        |row: &&BranchRow| row.reason.is_some() && row.executions.is_none_or(|runs| runs > 0);
    let mut unknown: Vec<&BranchRow> = document.branches.iter().filter(is_unknown).collect();
    if rows.is_empty() && unknown.is_empty() {
        return;
    }
    let value = |row: &BranchRow| row.mispredicted.as_ref().map_or(0.0, |m| m.value);
    rows.sort_by(|a, b| value(b).total_cmp(&value(a)).then(a.address.cmp(&b.address)));
    unknown.sort_by_key(|row| (Reverse(row.executions), &row.address));
    out.push('\n');
    let head = Subject { after: "branch", ..Subject::default() };
    page.row(out, &cells("mispredicted", "95 %", "cycles", "executions"), head);
    for row in rows.iter().take(MOST) {
        let Some(found) = &row.mispredicted else { continue };
        let interval = format!("{:.0} … {:.0}", found.low, found.high);
        let cycles = found.cycles.map_or("?".to_owned(), |cycles| format!("{cycles:.3e}"));
        let learning = if found.is_learning { ": seen only while the model learnt" } else { "" };
        let value = format!("{:.0}", found.value);
        branch(row, page, &cells(&value, &interval, &cycles, &executions(row)), learning, out);
    }
    for row in unknown.iter().take(MOST) {
        let reason = format!(": {}", row.reason.as_deref().unwrap_or_default());
        branch(row, page, &cells("?", "?", "?", &executions(row)), &reason, out);
    }
    let more = [rows.len(), unknown.len()].map(|n| n.saturating_sub(MOST)).iter().sum::<usize>();
    if more > 0 {
        let _ = writeln!(out, "{more:>14}  branches more (all in JSON)");
    }
}

fn cells(mispredicted: &str, interval: &str, cycles: &str, executions: &str) -> [Cell; 4] {
    [
        (Worth::All, format!("{mispredicted:>14}")),
        (Worth::Little, format!("  {interval:>22}")),
        (Worth::Some, format!("  {cycles:>10}")),
        (Worth::Little, format!("  {executions:>14}")),
    ]
}

fn executions(row: &BranchRow) -> String {
    row.executions.map_or("?".to_owned(), |n| n.to_string())
}

/// A row: address, function and kind after the cells.
fn branch(row: &BranchRow, page: Page, cells: &[Cell], note: &str, out: &mut String) {
    let mark = if row.extents.is_some() { " *" } else { "" };
    let (name, after) = (demangle_short(&row.function), format!(", {}{mark}{note}", row.kind));
    page.row(out, cells, Subject { place: &row.address, name: &name, after: &after });
}
