//! Recorded branches as text.

use crate::documents::branches::{Branches, EdgeRow, EventRow, TripsRow};
use std::fmt::Write as _;

/// Hard branches are shown however rare they are, but not more than these.
const MOST_HARD: usize = 50;

/// The document as text: of each event `most` edges, blocks and loops, and hard branches.
pub fn text(document: &Branches, most: usize) -> String {
    let mut out = String::new();
    for (number, event) in document.events.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        head(event, document.events.len() > 1, &mut out);
        edges(document, event, most, &mut out);
        blocks(document, event, most, &mut out);
        loops(document, event, most, &mut out);
        calls(document, event, most, &mut out);
        indirect(document, event, most, &mut out);
    }
    for note in &document.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn head(event: &EventRow, is_one_of_several: bool, out: &mut String) {
    let samples = event.samples.map_or(String::new(), |n| format!(" in {n} samples"));
    let (number, source) = match is_one_of_several {
        true => (format!("event {}: ", event.event), format!(" of {}", event.source)),
        false => (String::new(), String::new()),
    };
    let _ = writeln!(out, "{number}{}: {} branches{samples}{source}", event.name, event.entries);
    let _ = writeln!(out, "  {}", event.bias);
    if event.has_predictions {
        let _ =
            writeln!(out, "  branches that are not taken are not recorded, mispredicted or not");
    } else {
        let _ = writeln!(out, "  mispredictions: unknown: not recorded");
    }
    if !event.has_cycles {
        let why = if event.samples.is_some() { "this LBR has no cycles" } else { "not recorded" };
        let _ = writeln!(out, "  latency, iterations: unknown: {why}");
    }
    let s = &event.skipped;
    let all = [
        (
            s.duplicated,
            "newest entry that repeats the one before",
            "newest entries that repeat the one before",
        ),
        (s.wrong_path, "entry on a wrong path", "entries on a wrong path"),
        (s.backward, "range that ends before it begins", "ranges that end before they begin"),
        (s.long, "range over 1 MiB", "ranges over 1 MiB"),
        (
            s.between_modules,
            "range from one module into another",
            "ranges from one module into another",
        ),
        (s.saturated, "time at the end of its counter", "times at the end of their counter"),
        (
            s.unmapped,
            "entry partly outside all known mappings",
            "entries partly outside all known mappings",
        ),
    ];
    let words = |(n, one, many): &(u64, &str, &str)| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {many}")),
    };
    let some: Vec<String> = all.iter().filter_map(words).collect();
    if !some.is_empty() {
        let _ = writeln!(out, "  not used: {}", some.join(", "));
    }
}

/// The name of a function, after a blank.
fn name(function: &Option<String>) -> String {
    function.as_ref().map_or(String::new(), |name| format!(" {name}"))
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
    let (frequent, rest) = all.split_at(most.min(all.len()));
    frequent.iter().for_each(|edge| edge_row(edge, out));
    let mut hard: Vec<_> = rest.iter().filter(|edge| edge.hard).collect();
    hard.sort_by_key(|edge| std::cmp::Reverse(edge.mispredicted));
    hard.iter().take(MOST_HARD).for_each(|edge| edge_row(edge, out));
    let left = rest.len() - hard.len().min(MOST_HARD);
    match hard.len().saturating_sub(MOST_HARD) {
        _ if left == 0 => {}
        0 if event.has_predictions => {
            let _ = writeln!(out, "  {left} more, none of them hard{MORE}");
        }
        0 => more(left, 0, out),
        hard => {
            let _ = writeln!(out, "  {left} more, {hard} of them hard{MORE}");
        }
    }
}

fn edge_row(edge: &EdgeRow, out: &mut String) {
    let _ = writeln!(
        out,
        "{:6.1} %  {:>8}  {:>12}  {:>6}  {}",
        100.0 * edge.share,
        edge.count,
        wrong(edge.mispredicted, edge.marked, edge.hard),
        cycles(edge.cycles_median),
        edge_name(edge)
    );
}

/// The share of mispredictions among the executions that tell.
fn wrong(mispredicted: Option<u64>, of: u64, hard: bool) -> String {
    mispredicted.map_or("-".to_owned(), |n| {
        let hard = if hard { "hard " } else { "" };
        format!("{hard}{:.1} %", 100.0 * n as f64 / of.max(1) as f64)
    })
}

/// Where rows that are left out can be found.
const MORE: &str = " (-n shows more, --format json all)";

fn more(all: usize, most: usize, out: &mut String) {
    if all > most {
        let _ = writeln!(out, "  {} more{MORE}", all - most);
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
        let trips = match &one.trips {
            TripsRow { always: Some(trips), .. } => trips.to_string(),
            TripsRow { about: Some(mean), .. } => format!("{mean:.1}"),
            TripsRow { mean_at_least: Some(least), .. } => format!("≥ {:.0}", least.floor()),
            _ => "-".to_owned(),
        };
        let modes: Vec<String> = one.iterations.modes.iter().map(u64::to_string).collect();
        let _ = writeln!(
            out,
            "{:>8}  {trips:>6}  {:>17}  {:>6}  {:>6}  {}  {} ← {}{}",
            one.taken,
            one.iterations.count,
            cycles(one.iterations.mean),
            cycles(one.iterations.median),
            if modes.is_empty() { "-".to_owned() } else { modes.join(" ") },
            one.head,
            one.back,
            name(&one.function)
        );
        if let Some(why) = &one.unknown {
            let _ = writeln!(out, "{:>8}  trips, iterations: unknown: {why}", "");
        }
    }
    more(all.len(), most, out);
}

fn calls(document: &Branches, event: &EventRow, most: usize, out: &mut String) {
    let all: Vec<_> = document.calls.iter().filter(|c| c.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n   count  call or jump into another function");
    for call in all.iter().take(most) {
        let _ = writeln!(out, "{:>8}  {} → {}", call.count, call.from, call.to);
    }
    more(all.len(), most, out);
}

fn indirect(document: &Branches, event: &EventRow, most: usize, out: &mut String) {
    let all: Vec<_> = document.indirect.iter().filter(|i| i.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n   count  mispredicted  indirect branch, and its targets with their shares"
    );
    let (frequent, rest) = all.split_at(most.min(all.len()));
    let hard: Vec<_> = rest.iter().filter(|branch| branch.hard).take(MOST_HARD).collect();
    for branch in frequent.iter().chain(hard.iter().copied()) {
        let _ = writeln!(
            out,
            "{:>8}  {:>12}  {}{}  {}",
            branch.count,
            wrong(branch.mispredicted, branch.marked, branch.hard),
            branch.from,
            name(&branch.function),
            branch.kind
        );
        for target in branch.targets.iter().take(most) {
            let to = target.to.as_deref().unwrap_or("outside");
            let _ = writeln!(
                out,
                "{:>8}  {:>12}    {:5.1} % → {to}{}",
                target.count,
                wrong(target.mispredicted, target.marked, false),
                100.0 * target.share,
                name(&target.function)
            );
        }
        if branch.targets.len() > most {
            let _ = writeln!(out, "{:>24} {} more targets", "", branch.targets.len() - most);
        }
    }
    more(rest.len(), hard.len(), out);
}
