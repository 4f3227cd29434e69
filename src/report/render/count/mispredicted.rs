//! Modelled mispredictions, and registers at the entries of blocks, as text.

use crate::documents::count::{
    BranchRow, Count, Mispredictions, RegisterRow, ValueKind, ValueRow, ValuesAt,
};
use crate::format::{count, number};
use crate::render::width::{Cell, Page, Subject, Worth, more_in_json};
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
    answer(document, out);
    page.heading(out, &cells("rate", ["mispredicted", "(95 %)"], "cycles", "executions"), "branch");
    for row in rows.iter().take(MOST) {
        let Some(found) = &row.mispredicted else { continue };
        let rate = row.executions.map_or("?".to_owned(), |runs| rate(found.value, runs));
        let interval = format!("({:.0} … {:.0})", found.low, found.high);
        let cycles = found.cycles.map_or("?".to_owned(), number);
        let learning = if found.is_learning { ": seen only while the model learnt" } else { "" };
        let value = format!("{:.0}", found.value);
        let cells = cells(&rate, [&value, &interval], &cycles, &executions(row));
        branch(row, page, &cells, learning, out);
    }
    for row in unknown.iter().take(MOST) {
        let reason = format!(": {}", row.reason.as_deref().unwrap_or_default());
        branch(row, page, &cells("?", ["?", ""], "?", &executions(row)), &reason, out);
    }
    let more = [rows.len(), unknown.len()].map(|n| n.saturating_sub(MOST)).iter().sum::<usize>();
    more_in_json(out, more, "branches");
    if few > 0 {
        let _ = writeln!(out, "{few:>14}  branches with under {FEW} executions each (-v)");
    }
}

/// Fewer executions say nothing of what usually happens: such rows are left to `verbose`.
pub(super) const FEW: u64 = 100;

/// How many, their share of the executions and their cycles, and the branch with most of them.
fn answer(document: &Count, out: &mut String) {
    let all = Mispredictions::of(&document.branches);
    if all.executions == 0 {
        out.push_str("\nmispredictions: not known\n");
        return;
    }
    let share = rate(all.value, all.executions);
    let _ = write!(out, "\nmispredictions: {}, modelled, {share} of executions", count(all.value));
    if let Some(cycles) = all.cycles {
        let _ = write!(out, ", about {} cycles", number(cycles));
    }
    if let Some((row, value)) = all.most {
        let (name, part) = (demangle_short(&row.function), percent(value / all.value));
        let _ = write!(out, "; most in {name}, at {}: {part} of them", row.address);
    }
    out.push('\n');
}

/// The share of executions mispredicted.
fn rate(mispredicted: f64, executions: u64) -> String {
    match (mispredicted, executions) {
        (_, 0) => "?".to_owned(),
        (0.0, _) => "0 %".to_owned(),
        _ => percent(mispredicted / executions as f64),
    }
}

fn cells(rate: &str, [value, interval]: [&str; 2], cycles: &str, executions: &str) -> [Cell; 5] {
    [
        (Worth::Some, format!("{rate:>8}")),
        (Worth::All, format!("  {value:>12}")),
        (Worth::Little, format!(" {interval:<22}")),
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
    page.row(out, cells, Subject { place: &row.address.to_string(), name: &name, after: &after });
}

/// Blocks in text.
const MOST_VALUES: usize = 40;
/// Shares from here on are not shown.
const ALL: f64 = 0.9995;
/// Numbers from here on are hexadecimal.
const LARGE: i64 = 1 << 32;

/// The blocks that were entered most often: what their registers held.
pub(super) fn values(document: &Count, page: Page, out: &mut String) {
    let rows = &document.values;
    if rows.is_empty() {
        return;
    }
    let cells = |entries: &str, sampled: &str| {
        [(Worth::All, format!("{entries:>14}")), (Worth::Some, format!("  {sampled:>10}"))]
    };
    out.push('\n');
    page.heading(out, &cells("entries", "sampled"), "registers at the entry of");
    // Registers are below the names, on narrow pages as far left as they can be read.
    let indent = if page.is_below(80) { 4 } else { 28 };
    for row in rows.iter().take(MOST_VALUES) {
        let entries = row.entries.map_or("?".to_owned(), |n| n.to_string());
        let mark = if row.extents.is_some() { " *" } else { "" };
        let (name, after) = (demangle_short(&row.function), format!("{}{mark}", what(row)));
        let subject = Subject { place: &row.block.to_string(), name: &name, after: &after };
        page.row(out, &cells(&entries, &row.sampled.to_string()), subject);
        for register in &row.registers {
            let _ = writeln!(out, "{:>indent$}  {:<4}  {}", "", register.register, words(register));
        }
        if let Some(reason) = &row.reason {
            let _ = writeln!(out, "{:>indent$}  ? {reason}", "");
        }
    }
    more_in_json(out, rows.len().saturating_sub(MOST_VALUES), "blocks");
}

fn what(row: &ValueRow) -> &'static str {
    match row.of {
        ValuesAt::Loop => ", a loop: each iteration",
        ValuesAt::Function => "",
        ValuesAt::Block => ", a block",
    }
}

fn words(of: &RegisterRow) -> String {
    let number = |value: i64| value_text(value, !of.regions.is_empty());
    let optional = |value: Option<i64>| value.map_or("?".to_owned(), number);
    let mut text = match of.kind {
        ValueKind::Constant => format!("constant {}", optional(of.value)),
        ValueKind::Few => {
            let each = |v: &crate::documents::count::ValueShare| {
                format!("{} ({})", number(v.value), percent(v.share))
            };
            of.values.iter().map(each).collect::<Vec<_>>().join(", ")
        }
        ValueKind::Pointer => "pointer".to_owned(),
        ValueKind::Range => format!("{} … {}", optional(of.min), optional(of.max)),
        ValueKind::Spread => {
            format!("{} … {}, median {}", optional(of.min), optional(of.max), optional(of.median))
        }
        ValueKind::Unknown => "?".to_owned(),
    };
    if !of.regions.is_empty() {
        let place = |r: &crate::documents::count::RegionShare| match r.share < ALL {
            true => format!("{} ({})", r.region, percent(r.share)),
            false => r.region.clone(),
        };
        let places: Vec<String> = of.regions.iter().take(4).map(place).collect();
        let to = if of.kind == ValueKind::Pointer { " to " } else { "; points to " };
        let _ = write!(text, "{to}{}", places.join(", "));
    }
    match of.alignment {
        None => {}
        Some(1) => text += ", not aligned",
        Some(alignment) => _ = write!(text, ", aligned to {alignment}"),
    }
    if let (Some(stride), Some(share)) = (of.stride, of.stride_share) {
        let _ = write!(text, ", {stride:+} from entry to entry");
        if share < ALL {
            let _ = write!(text, " ({})", percent(share));
        }
    }
    text
}

fn value_text(value: i64, is_address: bool) -> String {
    match is_address || value >= LARGE {
        true => format!("{value:#x}"),
        false => value.to_string(),
    }
}

/// A share in per cent, with a decimal below 1.
fn percent(share: f64) -> String {
    match 100.0 * share {
        tiny if tiny < 0.05 => "<0.1 %".to_owned(),
        small if small < 0.95 => format!("{small:.1} %"),
        share => format!("{share:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::count::Modelled;

    /// Half of 200,000, and 10 of 200,000 at 20 cycles each.
    #[test]
    fn the_answer_is_before_the_rates() {
        let branch = |address: u64, value: f64| BranchRow {
            function: "run".to_owned(),
            address: address.into(),
            executions: Some(200_000),
            mispredicted: Some(Modelled {
                value,
                low: 0.9 * value,
                high: 1.1 * value,
                cycles: Some(20.0 * value),
                ..Modelled::default()
            }),
            ..BranchRow::default()
        };
        let branches = vec![branch(0x20, 10.0), branch(0x10, 100_000.0)];
        let document = Count { branches, ..Count::default() };
        let text = |columns| {
            let mut text = String::new();
            super::branches(&document, Page::of(columns), false, &mut text);
            text
        };
        let wide = "\nmispredictions: 100,010, modelled, 25 % of executions, about 2.00 M cycles; \
                    most in run, at 0x10: 100 % of them
    rate  mispredicted (95 %)                      cycles      executions  branch
    50 %        100000 (90000 … 110000)            2.00 M          200000  0x10 run, conditional
  <0.1 %            10 (9 … 11)                       200          200000  0x20 run, conditional
";
        assert_eq!(text(None), wide);
        assert!(
            text(Some(80)).contains("    50 %        100000      2.00 M  0x10 run, conditional")
        );
        assert!(text(Some(40)).contains("\n        100000  0x10 run, conditional"));
    }

    #[test]
    fn where_nothing_was_modelled_no_number_is_given() {
        let reason = Some("not recorded: interrupted before".to_owned());
        let branch = BranchRow { executions: Some(1000), reason, ..BranchRow::default() };
        let document = Count { branches: vec![branch], ..Count::default() };
        let mut text = String::new();
        super::branches(&document, Page::of(None), false, &mut text);
        assert!(text.starts_with("\nmispredictions: not known\n"), "{text}");
    }
}
