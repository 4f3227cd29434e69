//! Loads as text.

use super::allocations::sites;
use crate::documents::count::{Count, LoadClass, LoadRow};
use std::fmt::Write as _;

/// Rows in text.
const MOST: usize = 40;

/// The loads that were executed most often: their classes, levels and latencies.
pub(super) fn loads(document: &Count, out: &mut String) {
    if document.loads.is_empty() {
        return;
    }
    let names = ["L1", "L2", "L3", "DRAM"];
    let shown: Vec<&str> = names
        .into_iter()
        .filter(|name| document.loads.iter().any(|l| l.levels.iter().any(|s| s.level == *name)))
        .collect();
    let _ = write!(out, "\n{:>14}", "executions");
    shown.iter().for_each(|name| _ = write!(out, " {:>8}", format!("{name} %")));
    let _ = writeln!(out, " {:>8} {:>8}  {:<36}  load", "mean ns", "p99 ns", "addresses");
    for load in document.loads.iter().take(MOST) {
        let executions = load.executions.map_or("?".to_owned(), |n| n.to_string());
        let _ = write!(out, "{executions:>14}");
        for name in &shown {
            let _ = write!(out, " {:>8}", share(load, name));
        }
        let latency = |of: fn(&crate::documents::count::LoadLatency) -> f64| {
            load.latency.as_ref().map_or("?".to_owned(), |l| format!("{:.1}", of(l)))
        };
        let class = load.class.as_ref().map_or("?".to_owned(), LoadClass::words);
        let (mean, most) = (latency(|l| l.mean), latency(|l| l.p99));
        let field = load.field.as_ref().map_or(String::new(), |field| format!(" ({field})"));
        let mark = if load.extents.is_some() { " *" } else { "" };
        let place =
            format!("{} {}: {}{field}{mark}", load.address, load.function, load.instruction);
        let _ = writeln!(out, " {mean:>8} {most:>8}  {class:<36}  {place}");
        if let Some(text) = document.memory_of(load) {
            let _ = writeln!(out, "{:>14} memory: {text}", "");
        }
        for reason in &load.reasons {
            let _ = writeln!(out, "{:>14} {reason}", "");
        }
    }
    if document.loads.len() > MOST {
        let _ = writeln!(out, "{:>14}  loads more (all in JSON)", document.loads.len() - MOST);
    }
    sites(document, out);
    stores(document, out);
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
fn stores(document: &Count, out: &mut String) {
    if document.stores.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{:>14}  {:<36}  store (not timed)", "executions", "addresses");
    for store in document.stores.iter().take(STORES) {
        let executions = store.executions.map_or("?".to_owned(), |n| n.to_string());
        let class = store.class.as_ref().map_or("?".to_owned(), LoadClass::words);
        let place = format!("{} {}: {}", store.address, store.function, store.instruction);
        let _ = writeln!(out, "{executions:>14}  {class:<36}  {place}");
    }
    out.push('\n');
}

/// A share in per cent, with half its interval.
fn share(load: &LoadRow, level: &str) -> String {
    let found = load.levels.iter().find(|share| share.level == level);
    found.map_or("?".to_owned(), |one| {
        let half = (one.high - one.low) / 2.0;
        format!("{:.0} ±{:.0}", one.share * 100.0, (half * 100.0).ceil())
    })
}
