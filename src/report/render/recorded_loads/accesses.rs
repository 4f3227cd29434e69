//! Loads and stores as text.

use super::cells::{columns, cycles, heading, level_cells, more, shortened, source};
use crate::documents::loads::{EventRow, LoadRow};
use crate::render::width::{Cell, Rows, Subject, Worth};
use std::fmt::Write as _;

pub(super) fn accesses(
    what: &str,
    event: &EventRow,
    all: &[LoadRow],
    Rows { most, page }: Rows,
    out: &mut String,
) {
    let all: Vec<&LoadRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    let cells = |share: &str, samples: &str, levels: Vec<Cell>, [mean, p50, p99]: [&str; 3]| {
        let mut cells =
            vec![(Worth::All, format!("{share:>8}")), (Worth::Some, format!("  {samples:>7}"))];
        cells.extend(levels);
        cells.push((Worth::Some, format!("  {mean:>12}")));
        cells.extend([p50, p99].map(|one| (Worth::Little, format!("  {one:>5}"))));
        cells
    };
    let heads = ["cycles: mean", "p50", "p99"];
    out.push('\n');
    heading(out, page, &cells("share", "samples", level_cells(&columns, None), heads), what);
    let below = if page.is_below(80) { 4 } else { 18 };
    for load in all.iter().take(most) {
        let at = |value: Option<u32>| value.map_or("-".to_owned(), |v| v.to_string());
        let share = format!("{:.1} %", 100.0 * load.share);
        let levels = level_cells(&columns, Some(&load.levels));
        let of_latency = [cycles(load.latency_mean), at(load.latency_p50), at(load.latency_p99)];
        let of_latency = of_latency.each_ref().map(String::as_str);
        let name = match &load.function {
            Some(function) => function,
            None if load.module.is_empty() => "outside all known mappings",
            None => &load.module,
        };
        let subject = Subject { place: &load.address.to_string(), name, after: &code(load) };
        page.row(out, &cells(&share, &load.samples.to_string(), levels, of_latency), subject);
        for detail in details(load) {
            let _ = writeln!(out, "{:below$}{detail}", "");
        }
    }
    more(all.len(), most, out);
}

/// Source line and instruction.
fn code(load: &LoadRow) -> String {
    let mut text = String::new();
    if let Some(source) = source(load.file.as_ref(), load.line) {
        let _ = write!(text, " {source}");
    }
    if let Some(instruction) = &load.instruction {
        let _ = write!(text, ": {instruction}");
    }
    text
}

fn details(load: &LoadRow) -> Vec<String> {
    let mut code = Vec::new();
    if let Some(block) = &load.block {
        code.push(format!("block {}..{}", block.start, block.end));
    }
    code.extend(load.pattern.clone().or(load.class.map(|class| class.to_string())));
    for (depth, one) in load.loops.iter().enumerate() {
        let trips = match (one.trips, one.trips_at_least) {
            (Some(mean), _) => format!(" ({mean:.1} trips)"),
            (None, Some(least)) => format!(" (≥ {least} trips)"),
            (None, None) => String::new(),
        };
        let what = if depth == 0 { "loop" } else { "in loop" };
        let pattern = one.pattern.as_ref().filter(|_| depth > 0);
        let pattern = pattern.map_or(String::new(), |pattern| format!(": {pattern}"));
        code.push(format!("{what} {}{trips}{pattern}", one.head));
    }
    if let Some(slice) = load.slice.as_ref().filter(|slice| !slice.is_empty()) {
        code.push(format!("slice {}", shortened(slice)));
    }
    let mut memory: Vec<String> = load.operand().into_iter().collect();
    memory.extend(load.data().map(|data| format!("data: {data}")));
    let part = |n: u64| format!("{:.0} %", 100.0 * n as f64 / load.samples.max(1) as f64);
    let counts = [
        (load.tlb_walks.unwrap_or(0), "page walk"),
        (load.tlb_second.unwrap_or(0), "second TLB"),
        (load.snoop_modified, "modified in another core's cache"),
        (load.snoop_hits, "in another core's cache"),
        (load.locked, "locked"),
    ];
    memory.extend(
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{what} {}", part(*n))),
    );
    [code, memory].iter().filter(|all| !all.is_empty()).map(|all| all.join(", ")).collect()
}
