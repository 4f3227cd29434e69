//! Cells of the tables: levels, latencies, source lines, addresses.

use crate::documents::loads::LevelsRow;
use crate::format::joined;
use crate::render::width::{Cell, Page, Subject, Worth};
use std::fmt::Write as _;
use tma::Address;

pub(super) fn more(all: usize, most: usize, out: &mut String) {
    if all > most {
        let _ = writeln!(out, "  {} more (-n shows more, --format json all)", all - most);
    }
}

/// Levels with their headings: those that any row has.
pub(super) type Column = (&'static str, fn(&LevelsRow) -> u64);

pub(super) const COLUMNS: [Column; 8] = [
    ("LFB", |l| l.lfb),
    ("L1", |l| l.l1),
    ("L2", |l| l.l2),
    ("L3", |l| l.l3),
    ("DRAM", |l| l.ram),
    ("remote DRAM", |l| l.remote_ram),
    ("remote cache", |l| l.remote_cache),
    ("other", |l| l.other),
];

pub(super) fn columns<'a>(all: impl Iterator<Item = &'a LevelsRow> + Clone) -> Vec<Column> {
    COLUMNS.into_iter().filter(|(_, of)| all.clone().any(|row| of(row) > 0)).collect()
}

/// Shares of the levels; their headings without `levels`.
pub(super) fn level_cells(columns: &[Column], levels: Option<&LevelsRow>) -> Vec<Cell> {
    let total = |levels| COLUMNS.iter().map(|(_, of)| of(levels)).sum::<u64>();
    let cell = |(name, of): &Column| {
        let wide = name.len().max(5) + 2;
        let text = match levels.map(|levels| (of(levels), total(levels))) {
            None => (*name).to_owned(),
            Some((0, _)) => "-".to_owned(),
            Some((n, total)) => format!("{:.0} %", 100.0 * n as f64 / total.max(1) as f64),
        };
        (Worth::Little, format!("{text:>wide$}"))
    };
    columns.iter().map(cell).collect()
}

/// Adds the heading of a table, which ends in the name of its rows.
pub(super) fn heading(out: &mut String, page: Page, cells: &[Cell], name: &str) {
    page.row(out, cells, Subject { after: name, ..Subject::default() });
}

pub(super) fn cycles(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.0}"))
}

pub(super) fn source(file: Option<&String>, line: Option<u32>) -> Option<String> {
    let name = file?.rsplit('/').next()?;
    Some(line.map_or(name.to_owned(), |line| format!("{name}:{line}")))
}

/// Addresses, of many only the first.
pub(super) fn shortened(addresses: &[Address]) -> String {
    let shown = joined(addresses.iter().take(MOST_SLICE));
    match addresses.len().saturating_sub(MOST_SLICE) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Addresses shown of a slice.
const MOST_SLICE: usize = 6;
