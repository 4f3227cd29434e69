//! Registers at the entries of blocks as text.

use crate::documents::count::Count;
use crate::documents::count::{RegisterRow, ValueKind, ValueRow, ValuesAt};
use crate::render::width::{Page, Subject, Worth};
use profile::symbols::demangle::demangle_short;
use std::fmt::Write as _;

/// Blocks in text.
const MOST: usize = 40;
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
    let head = Subject { after: "registers at the entry of", ..Subject::default() };
    page.row(out, &cells("entries", "sampled"), head);
    // Registers are below the names, on narrow pages as far left as they can be read.
    let indent = if page.is_below(80) { 4 } else { 28 };
    for row in rows.iter().take(MOST) {
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
    if rows.len() > MOST {
        let _ = writeln!(out, "{:>14}  blocks more (all in JSON)", rows.len() - MOST);
    }
}

fn what(row: &ValueRow) -> &'static str {
    match row.of {
        ValuesAt::Loop => ", a loop: each iteration",
        ValuesAt::Function => "",
        ValuesAt::Block => ", a block",
    }
}

fn words(of: &RegisterRow) -> String {
    let number = |value: i64| number(value, !of.regions.is_empty());
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

fn number(value: i64, is_address: bool) -> String {
    match is_address || value >= LARGE {
        true => format!("{value:#x}"),
        false => value.to_string(),
    }
}

/// A share in per cent, with a decimal below 1.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        tiny if tiny < 0.05 => "<0.1 %".to_owned(),
        small if small < 0.95 => format!("{small:.1} %"),
        share => format!("{share:.0} %"),
    }
}
