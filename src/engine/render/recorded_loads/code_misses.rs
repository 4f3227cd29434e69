//! Lines of code that missed as text.

use super::cells::more;
use crate::documents::loads::Loads;
use std::fmt::Write as _;

pub(super) fn code_misses(document: &Loads, most: usize, out: &mut String) {
    let all = &document.code_misses;
    if all.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nlines of code that missed, and blocks 27 to 200 cycles before: prefetch sites"
    );
    let _ = writeln!(out, "   share  samples  line");
    for one in all.iter().take(most) {
        let of = one.function.as_deref().unwrap_or(&one.module);
        let (share, samples) = (100.0 * one.share, one.samples);
        let _ = writeln!(out, "{share:6.1} %  {samples:>7}  {} {of} ({})", one.address, one.name);
        for site in &one.sites {
            let of = site.function.as_deref().unwrap_or(&site.module);
            let _ = writeln!(
                out,
                "{:19}before {:.0} % of them, {:.0} cycles: {} {of} (before {} missed lines)",
                "",
                100.0 * site.coverage,
                site.distance,
                site.address,
                site.fan_out
            );
        }
        if one.reached == 0 {
            let _ = writeln!(out, "{:19}no branch at this distance, or no cycles are recorded", "");
        }
    }
    more(all.len(), most, out);
}
