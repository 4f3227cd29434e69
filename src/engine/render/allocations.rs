//! A table of the calls that allocated the memory that loads read.

use crate::documents::count::{AllocationSite, Count};
use std::fmt::Write as _;

/// Rows of the table of sites.
const MOST_ROWS: usize = 20;

/// A table of the sites.
pub(super) fn sites(document: &Count, out: &mut String) {
    let all = &document.allocation_sites;
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{:>14}  {:>14}  allocated by", "calls", "bytes");
    for site in all.iter().take(MOST_ROWS) {
        let AllocationSite { function, offset, by, .. } = site;
        let line = match (&site.file, site.line) {
            (Some(file), Some(line)) => format!(" {file}:{line}"),
            _ => String::new(),
        };
        let outer = if site.is_library { " (its caller is too far up the stack)" } else { "" };
        let place = format!("{function}+{offset:#x} ({by}){line}{outer}");
        let _ = writeln!(out, "{:>14}  {:>14}  {place}", site.allocations, site.bytes);
    }
    if all.len() > MOST_ROWS {
        let _ = writeln!(out, "{:>14}  sites more (all in JSON)", all.len() - MOST_ROWS);
    }
}
