//! The trees of regions as text.

use crate::documents::estimate::{Parts, Share};
use crate::documents::regions::{Region, RegionTree, Regions};
use crate::documents::report_parts::FunctionNode;
use std::fmt::Write as _;
use tma::text::name;

/// Rows of trees in text.
const MOST: usize = 20;
/// Parts below this are not shown.
const LEAST: f64 = 0.005;

/// A tree per region with samples, then by thread; why there are none.
pub(super) fn trees(document: &Regions, out: &mut String) {
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
        let of_threads = region.threads.iter().filter_map(|own| {
            let thread = match own.thread {
                Some(tid) => format!("thread {tid}"),
                None => format!("#{} of process {}", own.number, own.process),
            };
            Some((format!("{path}, {thread}"), own.tree.as_ref()?))
        });
        rows.extend(region.tree.iter().map(|tree| (path.clone(), tree)));
        rows.extend(of_threads);
    }
    for (path, tree) in rows.iter().take(MOST) {
        row(path, tree, out);
    }
    if rows.len() > MOST {
        let _ = writeln!(out, "  {} more (all in JSON)", rows.len() - MOST);
    }
    if let Some(why) = &sampled.no_tree {
        let _ = writeln!(out, "note: no tree: {}", name(why));
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
