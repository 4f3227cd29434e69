//! Recorded branches as text, CSV and input of llvm-profgen.

use super::csv::{number, row};
use crate::documents::branches::{Branches, EdgeRow, EventRow};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The document as text: of each event `most` edges, blocks and loops.
pub fn text(document: &Branches, most: usize) -> String {
    let mut out = String::new();
    for event in &document.events {
        head(event, &mut out);
        edges(document, event, most, &mut out);
        blocks(document, event, most, &mut out);
        loops(document, event, most, &mut out);
    }
    for note in &document.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn head(event: &EventRow, out: &mut String) {
    let _ =
        writeln!(out, "{}: {} branches in {} samples", event.name, event.entries, event.samples);
    let _ = writeln!(out, "  {}", event.bias);
    if event.has_predictions {
        let _ =
            writeln!(out, "  branches that are not taken are not recorded, mispredicted or not");
    } else {
        let _ = writeln!(out, "  mispredictions: not recorded");
    }
    if !event.has_cycles {
        let _ = writeln!(out, "  cycles: this processor's branch records have none");
    }
    let s = &event.skipped;
    let all = [
        (s.duplicated, "newest entries that repeat the one before"),
        (s.wrong_path, "entries on a wrong path"),
        (s.backward, "ranges that end before they begin"),
        (s.long, "ranges over 1 MiB"),
        (s.between_modules, "ranges from one module into another"),
        (s.saturated, "times at the end of their counter"),
        (s.unmapped, "entries partly outside all known mappings"),
    ];
    let some: Vec<String> =
        all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if !some.is_empty() {
        let _ = writeln!(out, "  not used: {}", some.join(", "));
    }
}

fn cycles(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.1}"))
}

fn edge_name(edge: &EdgeRow) -> String {
    let part = |address: &Option<String>, function: &Option<String>| {
        let address = address.as_deref().unwrap_or("outside");
        function.as_ref().map_or(address.to_owned(), |name| format!("{address} {name}"))
    };
    let to = match edge.from_function == edge.to_function {
        true => edge.to.clone().unwrap_or_else(|| "outside".to_owned()),
        false => part(&edge.to, &edge.to_function),
    };
    let kind = edge.kind.as_ref().map_or(String::new(), |kind| format!("  {kind}"));
    format!("{} → {to}{kind}", part(&edge.from, &edge.from_function))
}

fn edges(document: &Branches, event: &EventRow, most: usize, out: &mut String) {
    let all: Vec<_> = document.edges.iter().filter(|e| e.event == event.event).collect();
    let _ = writeln!(out, "\n   share     count  mispredicted  cycles  taken branch");
    for edge in all.iter().take(most) {
        let wrong = edge.mispredicted.map_or("-".to_owned(), |n| {
            format!("{:.1} %", 100.0 * n as f64 / edge.count.max(1) as f64)
        });
        let _ = writeln!(
            out,
            "{:6.1} %  {:>8}  {wrong:>12}  {:>6}  {}",
            100.0 * edge.share,
            edge.count,
            cycles(edge.cycles_median),
            edge_name(edge)
        );
    }
    more(all.len(), most, out);
}

fn more(all: usize, most: usize, out: &mut String) {
    if all > most {
        let _ = writeln!(out, "  {} more (-n shows more, --format json all)", all - most);
    }
}

fn blocks(document: &Branches, event: &EventRow, most: usize, out: &mut String) {
    let all: Vec<_> = document.blocks.iter().filter(|b| b.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n   count  cycles: mean  median  block");
    for block in all.iter().take(most) {
        let _ = writeln!(
            out,
            "{:>8}  {:>12}  {:>6}  {}..{} {}",
            block.count,
            cycles(block.cycles_mean),
            cycles(block.cycles_median),
            block.start,
            block.end,
            block.function
        );
    }
    more(all.len(), most, out);
}

fn loops(document: &Branches, event: &EventRow, most: usize, out: &mut String) {
    let all: Vec<_> = document.loops.iter().filter(|l| l.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n   taken   trips  iterations: timed    mean  median  modes   loop");
    for one in all.iter().take(most) {
        let trips = match (one.trips.mean, one.trips.at_least) {
            (Some(mean), _) => format!("{mean:.1}"),
            (None, Some(least)) => format!("≥ {least}"),
            (None, None) => "-".to_owned(),
        };
        let modes: Vec<String> = one.iterations.modes.iter().map(u64::to_string).collect();
        let _ = writeln!(
            out,
            "{:>8}  {trips:>6}  {:>17}  {:>6}  {:>6}  {}  {} ← {} {}",
            one.taken,
            one.iterations.count,
            cycles(one.iterations.mean),
            cycles(one.iterations.median),
            if modes.is_empty() { "-".to_owned() } else { modes.join(" ") },
            one.head,
            one.back,
            one.function.as_deref().unwrap_or_default()
        );
    }
    more(all.len(), most, out);
}

/// The document as CSV: one row per edge, range, block, instruction and loop; empty where a column does not
/// apply.
pub fn csv(document: &Branches) -> String {
    let mut out =
        String::from("what,event,module,from,to,count,mispredicted,cycles_mean,cycles_median\n");
    let mut add = |fields: [String; 9]| {
        out += &row(fields);
        out.push('\n');
    };
    let none = String::new;
    for e in &document.edges {
        let wrong = e.mispredicted.map(|n| n.to_string()).unwrap_or_default();
        let (from, to) = (e.from.clone().unwrap_or_default(), e.to.clone().unwrap_or_default());
        let (mean, median) = (number(e.cycles_mean), number(e.cycles_median));
        let count = e.count.to_string();
        let module = e.module.clone();
        add(["edge".into(), e.event.to_string(), module, from, to, count, wrong, mean, median]);
    }
    for r in &document.ranges {
        let (mean, median) = (number(r.cycles_mean), number(r.cycles_median));
        let (first, last, count) = (r.first.clone(), r.last.clone(), r.count.to_string());
        let module = r.module.clone();
        add([
            "range".into(),
            r.event.to_string(),
            module,
            first,
            last,
            count,
            none(),
            mean,
            median,
        ]);
    }
    for b in &document.blocks {
        let (mean, median) = (number(b.cycles_mean), number(b.cycles_median));
        let (start, end, count) = (b.start.clone(), b.end.clone(), b.count.to_string());
        let module = b.module.clone();
        add(["block".into(), b.event.to_string(), module, start, end, count, none(), mean, median]);
    }
    for i in &document.instructions {
        let (event, at, n) = (i.event.to_string(), i.address.clone(), i.samples.to_string());
        let module = i.module.clone();
        add(["instruction".into(), event, module, at, none(), n, none(), none(), none()]);
    }
    for l in &document.loops {
        let (mean, median) = (number(l.iterations.mean), number(l.iterations.median));
        let (head, back, n) = (l.head.clone(), l.back.clone(), l.taken.to_string());
        let module = l.module.clone();
        add(["loop".into(), l.event.to_string(), module, back, head, n, none(), mean, median]);
    }
    out
}

/// Ranges and branches of one module as `llvm-profgen --skip-symbolization --use-offset=0` writes them, input
/// of `llvm-profgen --unsymbolized-profile`: addresses without `0x`, in order.
pub fn unsymbolized(document: &Branches, module: &str) -> String {
    let plain = |address: &str| u64::from_str_radix(address.trim_start_matches("0x"), 16).ok();
    let mut ranges: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for r in document.ranges.iter().filter(|r| r.module == module) {
        let Some(key) = plain(&r.first).zip(plain(&r.last)) else { continue };
        *ranges.entry(key).or_default() += r.count;
    }
    let mut edges: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for e in document.edges.iter().filter(|e| e.module == module && e.to_module.is_none()) {
        let (Some(from), Some(to)) = (&e.from, &e.to) else { continue };
        let Some(key) = plain(from).zip(plain(to)) else { continue };
        *edges.entry(key).or_default() += e.count;
    }
    let mut out = format!("{}\n", ranges.len());
    for ((first, last), count) in &ranges {
        let _ = writeln!(out, "{first:x}-{last:x}:{count}");
    }
    let _ = writeln!(out, "{}", edges.len());
    for ((from, to), count) in &edges {
        let _ = writeln!(out, "{from:x}->{to:x}:{count}");
    }
    out
}
