//! Who allocated the memory that a load reads, in words.

use super::count::{AllocationSite, LoadMemory};

/// Sites of a load that are shown.
const MOST: usize = 4;
/// Smaller shares are not shown.
const LEAST: f64 = 0.005;

/// Allocations that a load reads: `97 % malloc in build, list.c:14; 3 % other`. None if nothing of it was allocated.
pub fn memory(all: &[AllocationSite], of: &LoadMemory) -> Option<String> {
    if of.sites.is_empty() && of.unknown <= 0.0 {
        return None;
    }
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let one = |site: &usize| all.get(*site).map(short);
    let mut parts: Vec<String> = Vec::new();
    for at in of.sites.iter().filter(|at| at.share >= LEAST).take(MOST) {
        let sites: Vec<String> = at.sites.iter().filter_map(one).collect();
        let several = if sites.len() > 1 { "several sites: " } else { "" };
        parts.push(format!("{} {several}{}", percent(at.share), sites.join(" or ")));
    }
    let rest: f64 = of.sites.iter().skip(MOST).map(|at| at.share).sum();
    let others = [
        (rest, "other sites (all in JSON)"),
        (of.other, "not allocated (static data, stack)"),
        (of.unknown, "not known"),
    ];
    parts.extend(
        others
            .iter()
            .filter(|(n, _)| *n >= LEAST)
            .map(|(n, text)| format!("{} {text}", percent(*n))),
    );
    Some(parts.join("; "))
}

/// `malloc in build, list.c:14`; without DWARF `malloc in build+0x1c`.
fn short(site: &AllocationSite) -> String {
    let function = site.inlined.as_ref().unwrap_or(&site.function);
    match (&site.file, site.line) {
        (Some(file), Some(line)) => {
            let file = file.rsplit('/').next().unwrap_or_default();
            format!("{} in {function}, {file}:{line}", site.by)
        }
        _ => format!("{} in {}+{:#x}", site.by, site.function, site.offset),
    }
}
