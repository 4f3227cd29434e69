//! Regions as text.

use crate::documents::regions::{Region, Regions, Times};
use crate::format::{count, seconds};
use std::fmt::Write as _;
use tma::text::name;

/// Rows of threads in text.
const MOST: usize = 60;

/// The regions as a tree, then by thread if there are several.
pub fn text(document: &Regions) -> String {
    let mut out = String::new();
    let cost = document.pair_cost.map_or("?".to_owned(), seconds);
    let _ = writeln!(
        out,
        "Regions of {}{}: {}, {} markers; a pair of probes takes {cost}, subtracted",
        name(&crate::format::command(&document.command)),
        document.process.map_or(String::new(), |pid| format!(" (process {pid})")),
        seconds(document.duration),
        count(document.markers as f64),
    );
    if !document.regions.is_empty() {
        let _ = writeln!(
            out,
            "\n{:>14}  {:>10}  {:>10}  {:>10}  {:>10}  region",
            "entries", "time", "mean", "min", "max"
        );
    }
    for row in &document.regions {
        let indent = "  ".repeat(row.inside.len());
        let _ =
            writeln!(out, "{}  {indent}{}{}", numbers(&row.all), name(&row.name), more(&row.all));
    }
    threads(document, &mut out);
    super::region_trees::trees(document, &mut out);
    for note in &document.notes {
        let _ = writeln!(out, "note: {}", name(note));
    }
    out
}

/// Regions of several threads, by thread.
fn threads(document: &Regions, out: &mut String) {
    if document.regions.iter().all(|row| row.threads.len() < 2) {
        return;
    }
    let _ = writeln!(out, "\nRegions of several threads, whose times are added up above");
    let rows = |row: &Region| -> Vec<String> {
        let path =
            row.inside.iter().chain([&row.name]).map(|n| name(n)).collect::<Vec<_>>().join(" > ");
        let each = row.threads.iter().map(|own| {
            let thread = match own.thread {
                Some(tid) => format!("thread {tid}"),
                None => format!("#{} of process {}", own.number, own.process),
            };
            format!("{}  {path}, {thread}{}", numbers(&own.of), more(&own.of))
        });
        each.collect()
    };
    let several = document.regions.iter().filter(|row| row.threads.len() > 1);
    let all: Vec<String> = several.flat_map(rows).collect();
    all.iter().take(MOST).for_each(|row| _ = writeln!(out, "{row}"));
    if all.len() > MOST {
        let _ = writeln!(out, "{:>14}  rows more (all in JSON)", all.len() - MOST);
    }
}

fn numbers(of: &Times) -> String {
    let time = |value: Option<f64>| value.map_or("-".to_owned(), seconds);
    format!(
        "{:>14}  {:>10}  {:>10}  {:>10}  {:>10}",
        count(of.entries as f64),
        time(of.time),
        time(of.mean),
        time(of.min),
        time(of.max)
    )
}

/// Limits of the numbers.
fn more(of: &Times) -> String {
    let mut words = Vec::new();
    if of.recursive > 0 {
        words.push(format!("{} inside itself", count(of.recursive as f64)));
    }
    if of.unfinished > 0 {
        words.push(format!("{} never ended", count(of.unfinished as f64)));
    }
    if of.too_short {
        words.push("too short to time".to_owned());
    }
    match words.is_empty() {
        true => String::new(),
        false => format!(" ({})", words.join(", ")),
    }
}
