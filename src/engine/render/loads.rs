//! Loads as text.

use super::allocations::sites;
use super::width::{Cell, Page, Subject, Worth};
use crate::documents::count::{Count, LoadClass, LoadRow};
use std::fmt::Write as _;

/// Rows in text.
const MOST: usize = 40;
/// Columns of a class of addresses.
const CLASS: usize = 36;

/// The loads that were executed most often: their classes, levels and latencies.
pub(super) fn loads(document: &Count, page: Page, out: &mut String) {
    if document.loads.is_empty() {
        return;
    }
    let names = ["L1", "L2", "L3", "DRAM"];
    let shown: Vec<&str> = names
        .into_iter()
        .filter(|name| document.loads.iter().any(|l| l.levels.iter().any(|s| s.level == *name)))
        .collect();
    let cells = |executions: &str, share: &dyn Fn(&str) -> String, rest: [&str; 3]| {
        let [mean, most, class] = rest;
        let mut cells: Vec<Cell> = vec![(Worth::All, format!("{executions:>14}"))];
        cells.extend(shown.iter().map(|name| (Worth::Little, format!(" {:>8}", share(name)))));
        cells.push((Worth::Some, format!(" {mean:>8}")));
        cells.push((Worth::Little, format!(" {most:>8}")));
        // The longest classes say by which load.
        let class = if page.is_below(120) { page.cut(class, 20) } else { class.to_owned() };
        let wide = if page.is_below(120) { 20 } else { CLASS };
        cells.push((Worth::Some, format!("  {class:<wide$}")));
        cells
    };
    out.push('\n');
    let head = Subject { after: "load", ..Subject::default() };
    let heads = ["mean ns", "p99 ns", "addresses"];
    page.row(out, &cells("executions", &|name| format!("{name} %"), heads), head);
    let below = if page.is_below(80) { 3 } else { 14 };
    for load in document.loads.iter().take(MOST) {
        let executions = load.executions.map_or("?".to_owned(), |n| n.to_string());
        let latency = |of: fn(&crate::documents::count::LoadLatency) -> f64| {
            load.latency.as_ref().map_or("?".to_owned(), |l| format!("{:.1}", of(l)))
        };
        let class = load.class.as_ref().map_or("?".to_owned(), LoadClass::words);
        let (mean, most) = (latency(|l| l.mean), latency(|l| l.p99));
        let field = load.field.as_ref().map_or(String::new(), |field| format!(" ({field})"));
        let mark = if load.extents.is_some() { " *" } else { "" };
        let after = format!(": {}{field}{mark}", load.instruction);
        let subject = Subject { place: &load.address, name: &load.function, after: &after };
        let rest = [&*mean, &*most, &*class];
        page.row(out, &cells(&executions, &|name| share(load, name), rest), subject);
        if let Some(text) = document.memory_of(load) {
            let _ = writeln!(out, "{:>below$} memory: {text}", "");
        }
        for reason in &load.reasons {
            let _ = writeln!(out, "{:>below$} {reason}", "");
        }
    }
    if document.loads.len() > MOST {
        let _ = writeln!(out, "{:>14}  loads more (all in JSON)", document.loads.len() - MOST);
    }
    sites(document, page, out);
    stores(document, page, out);
    let Some(timer) = &document.timer else { return };
    let caches: Vec<String> =
        timer.caches.iter().map(|one| format!("{} {:.1}", one.level, one.mean)).collect();
    let step = f64::from(timer.step) / timer.ticks_per_ns;
    let _ = writeln!(
        out,
        "latency is not stall: loads overlap, so the sum of latencies bounds their cost from above\n\
         latencies are taken between fences, for a few executions at random; mean hits on this host: \
         {} ns, memory from {:.0} ns on; the time-stamp counter steps by {step:.1} ns ({} ticks)",
        caches.join(", "),
        timer.memory,
        timer.step,
    );
    for level in &timer.assumed {
        let _ = writeln!(
            out,
            "{level}: others use it so much that its hits could not be measured; what lies between the \
             cache before it and memory is taken for them"
        );
    }
}

/// Most stores in text.
const STORES: usize = 10;

/// The stores that were executed most often: their addresses.
fn stores(document: &Count, page: Page, out: &mut String) {
    if document.stores.is_empty() {
        return;
    }
    let cells = |executions: &str, class: &str| {
        [(Worth::All, format!("{executions:>14}")), (Worth::Little, format!("  {class:<CLASS$}"))]
    };
    out.push('\n');
    let head = Subject { after: "store (not timed)", ..Subject::default() };
    page.row(out, &cells("executions", "addresses"), head);
    for store in document.stores.iter().take(STORES) {
        let executions = store.executions.map_or("?".to_owned(), |n| n.to_string());
        let class = store.class.as_ref().map_or("?".to_owned(), LoadClass::words);
        let after = format!(": {}", store.instruction);
        let subject = Subject { place: &store.address, name: &store.function, after: &after };
        page.row(out, &cells(&executions, &class), subject);
    }
    out.push('\n');
}

/// A share in per cent, with half its interval; only what is known of it where that is as large as the share.
fn share(load: &LoadRow, level: &str) -> String {
    let found = load.levels.iter().find(|share| share.level == level);
    found.map_or("?".to_owned(), |one| interval([one.share, one.low, one.high].map(|s| 100.0 * s)))
}

/// Least width of an interval in per cent of which its ends say more than its middle.
const WIDE: f64 = 50.0;
/// Width from which nothing is known.
const UNKNOWN: f64 = 90.0;

/// A value in per cent between two others.
fn interval([value, low, high]: [f64; 3]) -> String {
    let (width, half) = (high - low, ((high - low) / 2.0).ceil());
    match () {
        () if width >= UNKNOWN => "?".to_owned(),
        () if half >= value.round() => format!("≤{:.0}", high.ceil()),
        () if width >= WIDE => format!("{low:.0}…{high:.0}"),
        () => format!("{value:.0} ±{half:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn an_error_as_large_as_its_value_is_a_bound() {
        assert_eq!(interval([93.0, 87.0, 99.0]), "93 ±6");
        assert_eq!(interval([6.0, 0.0, 56.0]), "≤56");
        assert_eq!(interval([0.0, 0.0, 1.2]), "≤2");
        assert_eq!(interval([93.0, 43.0, 100.0]), "43…100");
        assert_eq!(interval([6.0, 0.0, 97.0]), "?", "anything is possible");
    }
}
