//! Recorded samples of loads and stores as text and CSV. This file has critical loads, hard branches, and missed
//! lines of code.
//!
//! | file | concern |
//! |---|---|
//! | `accesses` | loads and stores; variables, members of structures; cache lines that threads share |
//! | `csv` | the document as CSV |

mod accesses;
mod csv;

use crate::documents::loads::{
    BranchRow, CriticalRow, EventRow, Loads, ParallelOf, PathRow, ShareOf, Shares,
};
use crate::format::several;
use crate::render::width::{Page, Rows, Subject, Worth};
use accesses::{more, shortened};
use std::fmt::Write as _;

pub use csv::csv;

/// The document as text: of each table `most` rows.
pub fn text(document: &Loads, most: usize, page: Page) -> String {
    let (mut out, rows) = (String::new(), Rows { most, page });
    for (number, event) in document.events.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        head(event, &mut out);
        accesses::accesses("load", event, &document.loads, rows, &mut out);
        accesses::accesses("store", event, &document.stores, rows, &mut out);
        accesses::variables(event, &document.variables, rows, &mut out);
        accesses::fields(event, &document.fields, rows, &mut out);
    }
    accesses::lines(document, rows, &mut out);
    critical(document, rows, &mut out);
    hard_branches(document, rows, &mut out);
    code_misses(document, rows, &mut out);
    for note in &document.notes {
        let _ = writeln!(out, "note: {note}");
    }
    page.fitted(out)
}

fn head(event: &EventRow, out: &mut String) {
    let stores = match event.stores {
        0 => String::new(),
        n => format!(", {}", several(n, "store")),
    };
    let loads = several(event.loads, "load");
    let _ = writeln!(out, "{}: {loads}{stores} in {}", event.name, event.source);
    for sentence in &event.bias {
        let _ = writeln!(out, "  {sentence}");
    }
    let shares = match event.shares {
        Shares::Latency => "shares are of Σ latency × period",
        Shares::Samples => "no latencies are recorded: shares are of the samples, by their periods",
    };
    let _ = writeln!(out, "  {shares}");
    if event.others > 0 {
        let _ =
            writeln!(out, "  {} samples of instructions that neither load nor store", event.others);
    }
    if event.inexact > 0 {
        let _ = writeln!(
            out,
            "  {} samples skid: the load is the instruction named or one a few before it",
            event.inexact
        );
    }
}

fn critical(document: &Loads, Rows { most, page }: Rows, out: &mut String) {
    if document.critical.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\ncritical loads: > 5 % of the loads, > 20 % of them miss the last cache, addresses neither constant \
         nor a stride (CRISP)"
    );
    let cells = |share: &str, misses: &str| {
        [(Worth::All, format!("  {share:>8}")), (Worth::Some, format!("  {misses:>6}"))]
    };
    page.heading(out, &cells("of loads", "misses"), "load");
    for one in document.critical.iter().take(most) {
        let cells = cells(&format!("{:.1} %", 100.0 * one.executed), &misses(one));
        let name = one.function.as_deref().unwrap_or(&one.module);
        let subject =
            Subject { place: &one.address.to_string(), name, after: &critical_notes(one) };
        page.row(out, &cells, subject);
    }
    more(document.critical.len(), most, out);
}

/// A bound is not rounded up.
fn misses(one: &CriticalRow) -> String {
    match one.misses_at_least {
        true => format!("≥ {:.0} %", (100.0 * one.misses).floor()),
        false => format!("{:.0} %", 100.0 * one.misses),
    }
}

fn critical_notes(one: &CriticalRow) -> String {
    let mut notes = Vec::new();
    match one.class {
        Some(class) => notes.push(class.to_string().replace('_', " ")),
        None => notes.push("if its addresses are irregular, which is not known".to_owned()),
    }
    if let Some(slice) = one.slice.as_ref().filter(|slice| !slice.is_empty()) {
        notes.push(format!("slice {}", shortened(slice)));
    }
    match one.parallel {
        Some(misses) => {
            let least = if one.parallel_of == Some(ParallelOf::Cycles) { "≥ " } else { "" };
            notes.push(format!("MLP {least}{misses:.1}"));
        }
        None => notes.push("MLP not known".to_owned()),
    }
    notes.extend(path(one.critical_path.as_ref(), one.path_unknown.as_ref()));
    if one.executed_of == ShareOf::Samples {
        notes.push("share of the sampled loads, not of executed ones".to_owned());
    }
    if one.misses_of == ShareOf::Samples {
        notes.push("misses of its samples".to_owned());
    }
    format!(": {}", notes.join("; "))
}

fn hard_branches(document: &Loads, Rows { most, page }: Rows, out: &mut String) {
    if document.hard_branches.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nhard branches: > 15 % of their executions mispredicted, of which only the taken ones are recorded; where \
         executions are not known (-), of the taken ones"
    );
    let cells = |share: &str, least: &str, taken: &str, executions: &str| {
        [
            (Worth::All, format!("  {least:>24}")),
            (Worth::Some, format!("  {share:>8}")),
            (Worth::Little, format!("  {taken:>7}")),
            (Worth::Little, format!("  {executions:>10}")),
        ]
    };
    let names = cells("of taken", "mispredicted: executions", "taken", "executions");
    page.heading(out, &names, "branch");
    for one in document.hard_branches.iter().take(most) {
        let cells = cells(
            &format!("{:.1} %", 100.0 * one.share),
            &one.share_of_executions.map_or("-".to_owned(), at_least),
            &one.taken.to_string(),
            &one.executions.map_or("-".to_owned(), |n| n.to_string()),
        );
        let name = one.function.as_deref().unwrap_or(&one.module);
        page.row(
            out,
            &cells,
            Subject { place: &one.address.to_string(), name, after: &branch_notes(one) },
        );
    }
    more(document.hard_branches.len(), most, out);
}

/// A bound is not rounded up.
fn at_least(share: f64) -> String {
    format!("≥ {:.1} %", (1000.0 * share).floor() / 10.0)
}

fn branch_notes(one: &BranchRow) -> String {
    let mut notes = Vec::new();
    if let Some(slice) = one.slice.as_ref().filter(|slice| !slice.is_empty()) {
        notes.push(format!("slice {}", shortened(slice)));
    }
    notes.extend(path(one.critical_path.as_ref(), one.path_unknown.as_ref()));
    if notes.is_empty() { String::new() } else { format!(": {}", notes.join("; ")) }
}

/// The longest path of a slice, or why it is not known.
fn path(known: Option<&PathRow>, unknown: Option<&String>) -> Option<String> {
    let Some(path) = known else {
        return unknown.map(|why| format!("critical path not known: {why}"));
    };
    let (least, most) = (format!("{:.0}", path.cycles_least), format!("{:.0}", path.cycles));
    let cycles = if least == most { most } else { format!("{least} to {most}") };
    Some(format!("critical path {cycles} cycles"))
}

fn code_misses(document: &Loads, Rows { most, page }: Rows, out: &mut String) {
    let all = &document.code_misses;
    if all.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nlines of code that missed, and blocks 27 to 200 cycles before: prefetch sites"
    );
    let cells = |share: &str, samples: &str| {
        [(Worth::All, format!("{share:>8}")), (Worth::Some, format!("  {samples:>7}"))]
    };
    page.heading(out, &cells("share", "samples"), "line");
    let below = if page.is_below(80) { 4 } else { 19 };
    for one in all.iter().take(most) {
        let of = one.function.as_deref().unwrap_or(&one.module);
        let (share, samples) = (format!("{:.1} %", 100.0 * one.share), one.samples.to_string());
        let after = format!(" ({})", one.name);
        let subject = Subject { place: &one.address.to_string(), name: of, after: &after };
        page.row(out, &cells(&share, &samples), subject);
        for site in &one.sites {
            let of = site.function.as_deref().unwrap_or(&site.module);
            let of = page.cut(of, page.width().unwrap_or(0) / 3);
            let _ = writeln!(
                out,
                "{:below$}before {:.0} % of them, {:.0} cycles: {} {of} (before {} missed lines)",
                "",
                100.0 * site.coverage,
                site.distance,
                site.address,
                site.fan_out
            );
        }
        if one.reached == 0 {
            let _ =
                writeln!(out, "{:below$}no branch at this distance, or no cycles are recorded", "");
        }
    }
    more(all.len(), most, out);
}
