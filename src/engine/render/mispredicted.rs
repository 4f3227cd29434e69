//! Modelled mispredictions as text.

use crate::documents::count::{BranchRow, Count};
use profile::symbols::demangle::demangle_short;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Rows of branches in text, and of those that the model says nothing of.
const MOST: usize = 40;

/// The branches with modelled mispredictions, most first; then those of which none are known.
pub(super) fn branches(document: &Count, out: &mut String) {
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
    let _ = writeln!(
        out,
        "\n{:>14}  {:>22}  {:>10}  {:>14}  branch",
        "mispredicted", "95 %", "cycles", "executions"
    );
    for row in rows.iter().take(MOST) {
        let Some(found) = &row.mispredicted else { continue };
        let interval = format!("{:.0} … {:.0}", found.low, found.high);
        let cycles = found.cycles.map_or("?".to_owned(), |cycles| format!("{cycles:.3e}"));
        let learning = if found.is_learning { ": seen only while the model learnt" } else { "" };
        let place = place(row);
        let _ =
            writeln!(out, "{:>14.0}  {interval:>22}  {cycles:>10}  {place}{learning}", found.value);
    }
    for row in unknown.iter().take(MOST) {
        let reason = row.reason.as_deref().unwrap_or_default();
        let _ = writeln!(out, "{:>14}  {:>22}  {:>10}  {}: {reason}", "?", "?", "?", place(row));
    }
    let more = [rows.len(), unknown.len()].map(|n| n.saturating_sub(MOST)).iter().sum::<usize>();
    if more > 0 {
        let _ = writeln!(out, "{more:>14}  branches more (all in JSON)");
    }
}

/// Executions, address, kind and function.
fn place(row: &BranchRow) -> String {
    let executions = row.executions.map_or("?".to_owned(), |n| n.to_string());
    let name = demangle_short(&row.function);
    let mark = if row.extents.is_some() { " *" } else { "" };
    format!("{executions:>14}  {} {name}, {}{mark}", row.address, row.kind)
}
