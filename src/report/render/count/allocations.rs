//! A table of the calls that allocated the memory that loads read.

use crate::documents::count::{AllocationSite, Count};
use crate::render::width::{Page, Subject, Worth};
use std::fmt::Write as _;

/// Rows of the table of sites.
const MOST_ROWS: usize = 20;

/// A table of the sites.
pub(super) fn sites(document: &Count, page: Page, out: &mut String) {
    let all = &document.allocation_sites;
    if all.is_empty() {
        return;
    }
    let cells = |calls: &str, bytes: &str| {
        [(Worth::Some, format!("{calls:>14}")), (Worth::All, format!("  {bytes:>14}"))]
    };
    out.push('\n');
    let head = Subject { after: "allocated by", ..Subject::default() };
    page.row(out, &cells("calls", "bytes"), head);
    for site in all.iter().take(MOST_ROWS) {
        let AllocationSite { function, offset, by, .. } = site;
        let line = match (&site.file, site.line) {
            (Some(file), Some(line)) => format!(" {file}:{line}"),
            _ => String::new(),
        };
        let outer = if site.is_library { " (its caller is too far up the stack)" } else { "" };
        let after = format!("+{offset:#x} ({by}){line}{outer}");
        let cells = cells(&site.allocations.to_string(), &site.bytes.to_string());
        page.row(out, &cells, Subject { name: function, after: &after, ..Subject::default() });
    }
    if all.len() > MOST_ROWS {
        let _ = writeln!(out, "{:>14}  sites more (all in JSON)", all.len() - MOST_ROWS);
    }
}
