//! Loads and stores as text.

use super::cells::{columns, cycles, level_cells, level_heads, more, shortened, source};
use crate::documents::loads::{EventRow, LoadRow};
use std::fmt::Write as _;

pub(super) fn accesses(
    what: &str,
    event: &EventRow,
    all: &[LoadRow],
    most: usize,
    out: &mut String,
) {
    let all: Vec<&LoadRow> = all.iter().filter(|row| row.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let columns = columns(all.iter().map(|row| &row.levels));
    let heads = level_heads(&columns);
    let _ = writeln!(out, "\n   share  samples{heads}  cycles: mean    p50    p99  {what}");
    for load in all.iter().take(most) {
        let at = |value: Option<u32>| value.map_or("-".to_owned(), |v| v.to_string());
        let _ = writeln!(
            out,
            "{:6.1} %  {:>7}{}  {:>12}  {:>5}  {:>5}  {}",
            100.0 * load.share,
            load.samples,
            level_cells(&columns, &load.levels),
            cycles(load.latency_mean),
            at(load.latency_p50),
            at(load.latency_p99),
            place(load)
        );
        for detail in details(load) {
            let _ = writeln!(out, "{:18}{detail}", "");
        }
    }
    more(all.len(), most, out);
}

fn place(load: &LoadRow) -> String {
    let mut text = load.address.clone();
    match &load.function {
        Some(function) => _ = write!(text, " {function}"),
        None if load.module.is_empty() => text += " outside all known mappings",
        None => _ = write!(text, " {}", load.module),
    }
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
    if let Some(class) = load.pattern.as_ref().or(load.class.as_ref()) {
        code.push(class.clone());
    }
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
