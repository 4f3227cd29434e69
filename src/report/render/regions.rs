//! Regions, and their trees, as text.

use crate::documents::estimate::{Parts, Share};
use crate::documents::regions::{Region, RegionTree, Regions, ThreadRow, Times};
use crate::documents::report_parts::FunctionNode;
use crate::format::{count, seconds};
use crate::render::width::more_in_json;
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
    trees(document, &mut out);
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
        let path = path(row);
        let each = row
            .threads
            .iter()
            .map(|own| format!("{}  {path}, {}{}", numbers(&own.of), thread(own), more(&own.of)));
        each.collect()
    };
    let several = document.regions.iter().filter(|row| row.threads.len() > 1);
    let all: Vec<String> = several.flat_map(rows).collect();
    all.iter().take(MOST).for_each(|row| _ = writeln!(out, "{row}"));
    more_in_json(out, all.len().saturating_sub(MOST), "rows");
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

/// Rows of trees in text.
const MOST_TREES: usize = 20;
/// Parts below this are not shown.
const LEAST: f64 = 0.005;

/// A tree per region with samples, then by thread; why there are none.
fn trees(document: &Regions, out: &mut String) {
    let Some(sampled) = &document.sampled else { return };
    let how = match (&sampled.table, &sampled.no_tree) {
        (Some(table), _) => format!("level 1 counted at samples of {} ({table})", sampled.event),
        (None, None) => format!("estimated top-down, by samples of {}", sampled.event),
        (None, Some(_)) => format!("functions by samples of {}", sampled.event),
    };
    let _ = writeln!(out, "\nTime of regions, those inside included: {how}");
    let mut rows: Vec<(String, &RegionTree)> = Vec::new();
    for region in &document.regions {
        let path = path(region);
        let of_threads = region.threads.iter();
        let of_threads = of_threads
            .filter_map(|own| Some((format!("{path}, {}", thread(own)), own.tree.as_ref()?)));
        rows.extend(region.tree.iter().map(|tree| (path.clone(), tree)));
        rows.extend(of_threads);
    }
    for (path, tree) in rows.iter().take(MOST_TREES) {
        row(path, tree, out);
    }
    if rows.len() > MOST_TREES {
        let _ = writeln!(out, "  {} more (all in JSON)", rows.len() - MOST_TREES);
    }
    if let Some(why) = &sampled.no_tree {
        let _ = writeln!(out, "note: no tree: {}", name(why));
    }
}

fn thread(own: &ThreadRow) -> String {
    match own.thread {
        Some(tid) => format!("thread {tid}"),
        None => format!("#{} of process {}", own.number, own.process),
    }
}

fn path(region: &Region) -> String {
    region.inside.iter().chain([&region.name]).map(|n| name(n)).collect::<Vec<_>>().join(" > ")
}

fn row(path: &str, tree: &RegionTree, out: &mut String) {
    let functions: Vec<String> = tree
        .functions
        .iter()
        .map(|of| format!("{} {:.0} %", name(&of.name), 100.0 * of.share))
        .collect();
    let functions = match functions.is_empty() {
        true => String::new(),
        false => format!(": {}", functions.join(", ")),
    };
    let _ = writeln!(out, "  {:>5.1} %  {path}{functions}", 100.0 * tree.share);
    if let Some(why) = &tree.reason {
        let _ = writeln!(out, "           not known: {}", name(why));
        return;
    }
    for node in &tree.nodes {
        let _ = writeln!(out, "           {:<16} {}", node.label, counted(node));
    }
    if let Some(parts) = &tree.parts {
        estimated(parts, out);
    }
    if let Some(shared) = tree.shared.filter(|shared| *shared >= LEAST) {
        let _ = writeln!(
            out,
            "           {:.0} % of its time is in code that runs elsewhere, too: intervals allow for any division",
            100.0 * shared
        );
    }
}

fn counted(node: &FunctionNode) -> String {
    match (node.value, node.error) {
        (Some(value), Some(error)) => {
            let error = error + node.bias.unwrap_or(0.0);
            format!("{:>6.1} % ±{:.1}", 100.0 * value, 100.0 * error)
        }
        (Some(value), None) => format!("{:>6.1} %", 100.0 * value),
        (None, _) => format!("not counted: {}", node.missing.as_deref().unwrap_or("unknown")),
    }
}

fn estimated(parts: &Parts, out: &mut String) {
    for (part, share) in parts.iter() {
        let Share { value, low, high, source, .. } = share;
        if *high >= LEAST {
            let (low, high) = (100.0 * low, 100.0 * high);
            let interval = format!("{low:.0}-{high:.0} %");
            let value = match share.has_value() {
                true => format!("{:.1} %", 100.0 * value),
                false => "?".to_owned(),
            };
            let label = part.label();
            let _ = writeln!(out, "           {label:<16} {value:>8}  {interval:>9}  {source}");
        }
    }
}
