//! Modelled mispredictions as text.

use crate::documents::count::{BranchRow, Count};
use crate::render::width::{Cell, Page, Subject, Worth};
use profile::symbols::demangle::demangle_short;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Rows of branches in text, and of those that the model says nothing of.
const MOST: usize = 40;

/// The branches with modelled mispredictions, most first; then those of which none are known. Those of few executions
/// only if `verbose`.
pub(super) fn branches(document: &Count, page: Page, verbose: bool, out: &mut String) {
    let with = |row: &'_ BranchRow| row.mispredicted.as_ref().is_some_and(|m| m.high > 0.0);
    let mut rows: Vec<&BranchRow> = document.branches.iter().filter(|row| with(row)).collect();
    let is_unknown =
        |row: &&BranchRow| row.reason.is_some() && row.executions.is_none_or(|runs| runs > 0);
    let mut unknown: Vec<&BranchRow> = document.branches.iter().filter(is_unknown).collect();
    let all = rows.len() + unknown.len();
    let says_something =
        |row: &&BranchRow| verbose || row.executions.is_none_or(|runs| runs >= FEW);
    rows.retain(says_something);
    unknown.retain(says_something);
    let few = all - rows.len() - unknown.len();
    if few > 0 && few == all {
        let _ = writeln!(out, "\nbranches: {few}, each with under {FEW} executions (-v)");
    }
    if rows.is_empty() && unknown.is_empty() {
        return;
    }
    let value = |row: &BranchRow| row.mispredicted.as_ref().map_or(0.0, |m| m.value);
    rows.sort_by(|a, b| value(b).total_cmp(&value(a)).then(a.address.cmp(&b.address)));
    unknown.sort_by_key(|row| (Reverse(row.executions), row.address));
    out.push('\n');
    let head = Subject { after: "branch", ..Subject::default() };
    page.row(out, &cells("mispredicted", "95 %", "cycles", "executions"), head);
    for row in rows.iter().take(MOST) {
        let Some(found) = &row.mispredicted else { continue };
        let interval = format!("{:.0} … {:.0}", found.low, found.high);
        let cycles = found.cycles.map_or("?".to_owned(), in_short);
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
    if few > 0 {
        let _ = writeln!(out, "{few:>14}  branches with under {FEW} executions each (-v)");
    }
}

/// Fewer executions say nothing of what usually happens: such rows are left to `verbose`.
pub(super) const FEW: u64 = 100;

fn cells(mispredicted: &str, interval: &str, cycles: &str, executions: &str) -> [Cell; 4] {
    [
        (Worth::All, format!("{mispredicted:>14}")),
        (Worth::Little, format!("  {interval:>22}")),
        (Worth::Some, format!("  {cycles:>10}")),
        (Worth::Little, format!("  {executions:>14}")),
    ]
}

/// Three digits and the power of ten; nothing but 0 of none.
fn in_short(cycles: f64) -> String {
    if cycles > 0.0 { format!("{cycles:.3e}") } else { "0".to_owned() }
}

fn executions(row: &BranchRow) -> String {
    row.executions.map_or("?".to_owned(), |n| n.to_string())
}

/// A row: address, function and kind after the cells.
fn branch(row: &BranchRow, page: Page, cells: &[Cell], note: &str, out: &mut String) {
    let mark = if row.extents.is_some() { " *" } else { "" };
    let (name, after) = (demangle_short(&row.function), format!(", {}{mark}{note}", row.kind));
    page.row(out, cells, Subject { place: &row.address.to_string(), name: &name, after: &after });
}
