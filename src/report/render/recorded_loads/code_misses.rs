//! Lines of code that missed as text.

use super::cells::{heading, more};
use crate::documents::loads::Loads;
use crate::render::width::{Rows, Subject, Worth};
use std::fmt::Write as _;

pub(super) fn code_misses(document: &Loads, Rows { most, page }: Rows, out: &mut String) {
    let all = &document.code_misses;
    if all.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nlines of code that missed, and blocks 27 to 200 cycles before: prefetch sites"
    );
    let cells = |share: &str, samples: &str| {
        [(Worth::All, format!("{share:>8}")), (Worth::Some, format!("  {samples:>7}"))]
    };
    heading(out, page, &cells("share", "samples"), "line");
    let below = if page.is_below(80) { 4 } else { 19 };
    for one in all.iter().take(most) {
        let of = one.function.as_deref().unwrap_or(&one.module);
        let (share, samples) = (format!("{:.1} %", 100.0 * one.share), one.samples.to_string());
        let after = format!(" ({})", one.name);
        let subject = Subject { place: &one.address.to_string(), name: of, after: &after };
        page.row(out, &cells(&share, &samples), subject);
        for site in &one.sites {
            let of = site.function.as_deref().unwrap_or(&site.module);
            let of = page.cut(of, page.width().unwrap_or(0) / 3);
            let _ = writeln!(
                out,
                "{:below$}before {:.0} % of them, {:.0} cycles: {} {of} (before {} missed lines)",
                "",
                100.0 * site.coverage,
                site.distance,
                site.address,
                site.fan_out
            );
        }
        if one.reached == 0 {
            let _ =
                writeln!(out, "{:below$}no branch at this distance, or no cycles are recorded", "");
        }
    }
    more(all.len(), most, out);
}
