//! Loads as text, with a table of the calls that allocated the memory that they read.

use crate::documents::count::{AllocationSite, Count, Level, LoadClass, LoadRow};
use crate::render::width::{Cell, Page, Subject, Worth, elided, more_in_json};
use profile::symbols::demangle::demangle_short;
use std::fmt::Write as _;

/// Rows in text.
const MOST: usize = 40;
/// Columns of a class of addresses.
const CLASS: usize = 36;
/// Longest name of a function that is shown whole.
const NAME: usize = 48;

/// The loads that were executed most often: their classes, levels and latencies.
pub(super) fn loads(document: &Count, page: Page, out: &mut String) {
    if document.loads.is_empty() {
        return;
    }
    let levels = [Level::L1, Level::L2, Level::L3, Level::Memory];
    let shown: Vec<Level> = levels
        .into_iter()
        .filter(|level| document.loads.iter().any(|l| l.levels.iter().any(|s| s.level == *level)))
        .collect();
    let cells = |executions: &str, share: &dyn Fn(Level) -> String, rest: [&str; 3]| {
        let [mean, most, class] = rest;
        let mut cells: Vec<Cell> = vec![(Worth::All, format!("{executions:>14}"))];
        cells.extend(shown.iter().map(|level| (Worth::Little, format!(" {:>8}", share(*level)))));
        cells.push((Worth::Some, format!(" {mean:>8}")));
        cells.push((Worth::Little, format!(" {most:>8}")));
        // The longest classes say by which load.
        let class = if page.is_below(120) { page.cut(class, 20) } else { class.to_owned() };
        let wide = if page.is_below(120) { 20 } else { CLASS };
        cells.push((Worth::Some, format!("  {class:<wide$}")));
        cells
    };
    out.push('\n');
    let heads = ["mean ns", "p99 ns", "addresses"];
    page.heading(out, &cells("executions", &|level| format!("{level} %"), heads), "load");
    let below = if page.is_below(80) { 3 } else { 14 };
    let mut shown = document.loads.iter().take(MOST).peekable();
    let mut alike = 1;
    while let Some(load) = shown.next() {
        let executions = load.executions.map_or("?".to_owned(), |n| n.to_string());
        let latency = |of: fn(&crate::documents::count::LoadLatency) -> f64| {
            load.latency.as_ref().map_or("?".to_owned(), |l| format!("{:.1}", of(l)))
        };
        let class = load.class.as_ref().map_or("?".to_owned(), LoadClass::words);
        let (mean, most) = (latency(|l| l.mean), latency(|l| l.p99));
        let field = load.field.as_ref().map_or(String::new(), |field| format!(" ({field})"));
        let mark = if load.extents.is_some() { " *" } else { "" };
        let after = format!(": {}{field}{mark}", load.instruction);
        let name = name(load);
        let subject = Subject { place: &load.address.to_string(), name: &name, after: &after };
        let rest = [&*mean, &*most, &*class];
        page.row(out, &cells(&executions, &|level| share(load, level), rest), subject);
        // Lines that several rows share are written once.
        let lines = about(document, load);
        if !lines.is_empty() && shown.peek().is_some_and(|next| about(document, next) == lines) {
            alike += 1;
            continue;
        }
        let of = if alike > 1 { format!("all {alike}: ") } else { String::new() };
        for line in lines {
            let _ = writeln!(out, "{:>below$} {of}{line}", "");
        }
        alike = 1;
    }
    more_in_json(out, document.loads.len().saturating_sub(MOST), "loads");
    sites(document, page, out);
    stores(document, page, out);
    for line in document.contended_lines.iter().take(LINES) {
        let _ = writeln!(out, "{}", line.text());
    }
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

/// The memory that it reads, and why something of it is missing.
fn about(document: &Count, load: &LoadRow) -> Vec<String> {
    let memory = document.memory_of(load).map(|text| format!("memory: {text}"));
    memory.into_iter().chain(load.reasons.iter().cloned()).collect()
}

/// Its function, as in a report.
fn name(load: &LoadRow) -> String {
    elided(&demangle_short(&load.function), NAME)
}

/// Most contended lines in text.
const LINES: usize = 3;
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
    page.heading(out, &cells("executions", "addresses"), "store (not timed)");
    for store in document.stores.iter().take(STORES) {
        let executions = store.executions.map_or("?".to_owned(), |n| n.to_string());
        let class = store.class.as_ref().map_or("?".to_owned(), LoadClass::words);
        let after = format!(": {}", store.instruction);
        let name = name(store);
        let subject = Subject { place: &store.address.to_string(), name: &name, after: &after };
        page.row(out, &cells(&executions, &class), subject);
    }
    out.push('\n');
}

/// A share in per cent, with half its interval; only what is known of it where that is as large as the share.
fn share(load: &LoadRow, level: Level) -> String {
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

/// Rows of the table of sites.
const MOST_ROWS: usize = 20;

/// A table of the sites.
fn sites(document: &Count, page: Page, out: &mut String) {
    let all = &document.allocation_sites;
    if all.is_empty() {
        return;
    }
    let cells = |calls: &str, bytes: &str| {
        [(Worth::Some, format!("{calls:>14}")), (Worth::All, format!("  {bytes:>14}"))]
    };
    out.push('\n');
    page.heading(out, &cells("calls", "bytes"), "allocated by");
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
    more_in_json(out, all.len().saturating_sub(MOST_ROWS), "sites");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::count::{AllocatedAt, AllocationSite, LoadMemory};

    /// Names as rustc and g++ mangle them.
    #[test]
    fn names_are_those_of_a_report_and_what_rows_share_is_said_once() {
        let long = format!("_ZN{}3runEv", "9very_long".repeat(9));
        let load = |function: &str, address: u64, site| LoadRow {
            function: function.to_owned(),
            address: address.into(),
            instruction: "mov rax,[rcx]".to_owned(),
            memory: Some(LoadMemory {
                sites: vec![AllocatedAt { sites: vec![site], share: 1.0 }],
                ..LoadMemory::default()
            }),
            ..LoadRow::default()
        };
        let site = |function: &str| AllocationSite {
            function: function.to_owned(),
            by: "malloc".to_owned(),
            ..AllocationSite::default()
        };
        let document = Count {
            loads: vec![
                load("_ZNK2ns3EngIlE3sumEv", 0x10, 0),
                load("_ZNK2ns3EngIlE3sumEv", 0x18, 0),
                load(&long, 0x20, 1),
            ],
            stores: vec![load("_RNvC4main4work", 0x30, 0)],
            allocation_sites: vec![site("build"), site("grow")],
            ..Count::default()
        };
        let mut text = String::new();
        loads(&document, Page::default(), &mut text);
        for wanted in [
            "  0x10 ns::Eng<long>::sum: mov rax,[rcx]\n",
            "  0x18 ns::Eng<long>::sum: mov rax,[rcx]\n               all 2: memory: 100 % malloc in build+0x0\n",
            "  0x20 very_long::very_long::v...y_long::very_long::run: mov",
            "\n               memory: 100 % malloc in grow+0x0\n",
            "  0x30 main::work: mov",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert_eq!(text.matches("malloc in build").count(), 1, "{text}");
    }

    #[test]
    fn an_error_as_large_as_its_value_is_a_bound() {
        assert_eq!(interval([93.0, 87.0, 99.0]), "93 ±6");
        assert_eq!(interval([6.0, 0.0, 56.0]), "≤56");
        assert_eq!(interval([0.0, 0.0, 1.2]), "≤2");
        assert_eq!(interval([93.0, 43.0, 100.0]), "43…100");
        assert_eq!(interval([6.0, 0.0, 97.0]), "?", "anything is possible");
    }
}
