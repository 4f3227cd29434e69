//! Recorded branches as text; `table` has them as CSV, `tools` as inputs of other tools.

mod table;
mod tools;

use crate::documents::branches::{Branches, EdgeRow, EventRow, TripsRow};
use crate::format::several;
use crate::render::width::{Cell, Page, Rows, Subject, Worth};
use std::fmt::Write as _;
use tma::Address;

pub use table::csv;
pub use tools::{autofdo, bolt, pprof, unsymbolized};

/// Hard branches are shown however rare they are, but not more than these.
const MOST_HARD: usize = 50;

/// The document as text: of each event `most` edges, blocks and loops, and hard branches.
pub fn text(document: &Branches, most: usize, page: Page) -> String {
    let (mut out, rows) = (String::new(), Rows { most, page });
    for (number, event) in document.events.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        head(event, document.events.len() > 1, &mut out);
        edges(document, event, rows, &mut out);
        blocks(document, event, rows, &mut out);
        loops(document, event, rows, &mut out);
        calls(document, event, rows, &mut out);
        indirect(document, event, rows, &mut out);
    }
    for note in &document.notes {
        let _ = writeln!(out, "note: {note}");
    }
    page.fitted(out)
}

fn head(event: &EventRow, is_one_of_several: bool, out: &mut String) {
    let samples = event.samples.map_or(String::new(), |n| format!(" in {}", several(n, "sample")));
    let (number, source) = match is_one_of_several {
        true => (format!("event {}: ", event.event), format!(" of {}", event.source)),
        false => (String::new(), String::new()),
    };
    let branches = several(event.entries, "branch");
    let _ = writeln!(out, "{number}{}: {branches}{samples}{source}", event.name);
    let _ = writeln!(out, "  {}", event.bias);
    modules(event, out);
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

/// Modules named with their branches.
const MOST_MODULES: usize = 3;

/// Which modules the branches are of.
fn modules(event: &EventRow, out: &mut String) {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let mut some: Vec<String> = event
        .modules
        .iter()
        .take(MOST_MODULES)
        .map(|row| format!("{} {}", name(&row.module), row.entries))
        .collect();
    let rest = &event.modules[event.modules.len().min(MOST_MODULES)..];
    if !rest.is_empty() {
        some.push(format!("others {}", rest.iter().map(|row| row.entries).sum::<u64>()));
    }
    let of = if some.is_empty() { String::new() } else { format!(": {}", some.join(", ")) };
    let _ = writeln!(out, "  shares are of all {} branches{of}", event.entries);
}

fn cycles(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |v| format!("{v:.1}"))
}

/// Columns of a name on a page that has not room for two.
const ONE_OF_TWO: usize = 20;

/// An address, if it is in a known mapping.
fn or_outside(of: Option<Address>) -> String {
    of.map_or_else(|| "outside".to_owned(), |address| address.to_string())
}

/// Where an edge leads to, and its kind.
fn edge_end(edge: &EdgeRow, page: Page) -> String {
    let to = or_outside(edge.to);
    let name = edge.to_function.as_ref().filter(|name| Some(*name) != edge.from_function.as_ref());
    let cut = |name: &String| match page.is_below(120) {
        true => page.cut(name, ONE_OF_TWO),
        false => name.clone(),
    };
    let name = name.map_or(String::new(), |name| format!(" {}", cut(name)));
    let kind = edge.kind.map_or(String::new(), |kind| format!("  {kind}"));
    format!(" → {to}{name}{kind}")
}

fn edge_cells(share: &str, count: &str, wrong: &str, cycles: &str) -> [Cell; 4] {
    [
        (Worth::All, format!("{share:>8}")),
        (Worth::Some, format!("  {count:>8}")),
        (Worth::Little, format!("  {wrong:>12}")),
        (Worth::Little, format!("  {cycles:>6}")),
    ]
}

fn edges(document: &Branches, event: &EventRow, Rows { most, page }: Rows, out: &mut String) {
    let all: Vec<_> = document.edges.iter().filter(|e| e.event == event.event).collect();
    out.push('\n');
    page.heading(out, &edge_cells("share", "count", "mispredicted", "cycles"), "taken branch");
    let (frequent, rest) = all.split_at(most.min(all.len()));
    frequent.iter().for_each(|edge| edge_row(edge, page, out));
    let mut hard: Vec<_> = rest.iter().filter(|edge| edge.hard).collect();
    hard.sort_by_key(|edge| std::cmp::Reverse(edge.mispredicted));
    hard.iter().take(MOST_HARD).for_each(|edge| edge_row(edge, page, out));
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

fn edge_row(edge: &EdgeRow, page: Page, out: &mut String) {
    let cells = edge_cells(
        &format!("{:.1} %", 100.0 * edge.share),
        &edge.count.to_string(),
        &wrong(edge.mispredicted, edge.marked, edge.hard),
        &cycles(edge.cycles_median),
    );
    let place = &or_outside(edge.from);
    let name = edge.from_function.as_deref().unwrap_or_default();
    page.row(out, &cells, Subject { place, name, after: &edge_end(edge, page) });
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

fn blocks(document: &Branches, event: &EventRow, Rows { most, page }: Rows, out: &mut String) {
    let all: Vec<_> = document.blocks.iter().filter(|b| b.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let cells = |count: &str, mean: &str, median: &str| {
        [
            (Worth::All, format!("{count:>8}")),
            (Worth::Little, format!("  {mean:>12}")),
            (Worth::Little, format!("  {median:>6}")),
        ]
    };
    out.push('\n');
    page.heading(out, &cells("count", "cycles: mean", "median"), "block");
    for block in all.iter().take(most) {
        let (mean, median) = (cycles(block.cycles_mean), cycles(block.cycles_median));
        let place = format!("{}..{}", block.start, block.end);
        let subject = Subject { place: &place, name: &block.function, after: "" };
        page.row(out, &cells(&block.count.to_string(), &mean, &median), subject);
    }
    more(all.len(), most, out);
}

fn loops(document: &Branches, event: &EventRow, Rows { most, page }: Rows, out: &mut String) {
    let all: Vec<_> = document.loops.iter().filter(|l| l.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let cells = |taken: &str, trips: &str, rest: [&str; 4]| {
        let [timed, mean, median, modes] = rest;
        [
            (Worth::All, format!("{taken:>8}")),
            (Worth::Some, format!("  {trips:>6}")),
            (Worth::Little, format!("  {timed:>17}")),
            (Worth::Little, format!("  {mean:>6}")),
            (Worth::Little, format!("  {median:>6}")),
            (Worth::Little, format!("  {modes:<6}")),
        ]
    };
    let heads = ["iterations: timed", "mean", "median", "modes"];
    out.push('\n');
    page.heading(out, &cells("taken", "trips", heads), "loop");
    for one in all.iter().take(most) {
        let trips = match &one.trips {
            TripsRow { always: Some(trips), .. } => trips.to_string(),
            TripsRow { about: Some(mean), .. } => format!("{mean:.1}"),
            TripsRow { mean_at_least: Some(least), .. } => format!("≥ {:.0}", least.floor()),
            _ => "-".to_owned(),
        };
        let modes: Vec<String> = one.iterations.modes.iter().map(u64::to_string).collect();
        let own = &one.iterations;
        let modes = if modes.is_empty() { "-".to_owned() } else { modes.join(" ") };
        let rest = [&*own.count.to_string(), &cycles(own.mean), &cycles(own.median), &modes];
        let place = format!("{} ← {}", one.head, one.back);
        let name = one.function.as_deref().unwrap_or_default();
        let subject = Subject { place: &place, name, after: "" };
        page.row(out, &cells(&one.taken.to_string(), &trips, rest), subject);
        if one.target != one.head {
            let _ = writeln!(
                out,
                "{:>8}  the branch goes to {}, from where code runs straight on into the head",
                "", one.target
            );
        }
        if let Some(why) = &one.unknown {
            let _ = writeln!(out, "{:>8}  trips, iterations: unknown: {why}", "");
        }
    }
    more(all.len(), most, out);
}

fn calls(document: &Branches, event: &EventRow, Rows { most, page }: Rows, out: &mut String) {
    let all: Vec<_> = document.calls.iter().filter(|c| c.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let cells = |count: &str| [(Worth::All, format!("{count:>8}"))];
    out.push('\n');
    page.heading(out, &cells("count"), "call or jump into another function");
    for call in all.iter().take(most) {
        // Each name has half of what there is.
        let half = page.width().map_or(usize::MAX, |width| (width - 13) / 2);
        let after = format!(" → {}", page.cut(&call.to, half));
        let subject = Subject { name: &page.cut(&call.from, half), after: &after, place: "" };
        page.row(out, &cells(&call.count.to_string()), subject);
    }
    more(all.len(), most, out);
}

fn indirect(document: &Branches, event: &EventRow, Rows { most, page }: Rows, out: &mut String) {
    let all: Vec<_> = document.indirect.iter().filter(|i| i.event == event.event).collect();
    if all.is_empty() {
        return;
    }
    let cells = |count: &str, wrong: &str| {
        [(Worth::All, format!("{count:>8}")), (Worth::Some, format!("  {wrong:>12}"))]
    };
    let name = "indirect branch, and its targets with their shares";
    out.push('\n');
    page.heading(out, &cells("count", "mispredicted"), name);
    let (frequent, rest) = all.split_at(most.min(all.len()));
    let hard: Vec<_> = rest.iter().filter(|branch| branch.hard).take(MOST_HARD).collect();
    for branch in frequent.iter().chain(hard.iter().copied()) {
        let function = branch.function.as_deref().unwrap_or_default();
        let wrongly = wrong(branch.mispredicted, branch.marked, branch.hard);
        let after = format!("  {}", branch.kind);
        let subject = Subject { place: &branch.from.to_string(), name: function, after: &after };
        page.row(out, &cells(&branch.count.to_string(), &wrongly), subject);
        for target in branch.targets.iter().take(most) {
            let to = or_outside(target.to);
            let wrongly = wrong(target.mispredicted, target.marked, false);
            let place = format!("  {:5.1} % → {to}", 100.0 * target.share);
            let name = target.function.as_deref().unwrap_or_default();
            let subject = Subject { place: &place, name, after: "" };
            page.row(out, &cells(&target.count.to_string(), &wrongly), subject);
        }
        if branch.targets.len() > most {
            let _ = writeln!(out, "{:>24} {} more targets", "", branch.targets.len() - most);
        }
    }
    more(rest.len(), hard.len(), out);
}
