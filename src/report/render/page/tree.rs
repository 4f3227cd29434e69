//! The counted tree and the metrics beside it, for each part of the measurement.

use super::pieces::{bar, colour, opening, remark, section, share_with_error, xml};
use super::shown::not_measured;
use crate::documents::report::{InfoRow, NodeRow, Place, Report};
use crate::format;
use std::fmt::Write as _;

/// The trees of all places.
pub(super) fn trees(report: &Report) -> String {
    let mut body = String::new();
    for place in report.places() {
        let heading = place.title();
        if !heading.is_empty() {
            let _ = writeln!(body, "<h3>{}</h3>", xml(&heading));
        }
        let of = |other: &Place| other.key() == place.key();
        let nodes: Vec<&NodeRow> = report.nodes.iter().filter(|n| of(&n.place)).collect();
        body += &tree(&nodes);
        let views = [("Bottlenecks", &report.bottlenecks), ("Metrics", &report.info)];
        for (name, rows) in views {
            body += &metrics(name, rows.iter().filter(|row| of(&row.place)).collect());
        }
    }
    match body.is_empty() {
        true => body,
        false => section("tree", "Top-down tree", &body),
    }
}

fn tree(all: &[&NodeRow]) -> String {
    let (nodes, missing): (Vec<&NodeRow>, Vec<&NodeRow>) =
        all.iter().partition(|n| n.value.is_some());
    let missing = missing.iter().map(|node| (node.label.as_str(), node.missing.as_deref()));
    let missing = not_measured(missing);
    if nodes.is_empty() {
        return missing;
    }
    let ids: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    let is_root =
        |node: &&&NodeRow| node.parent.as_deref().is_none_or(|parent| !ids.contains(&parent));
    let mut out = "<div class=\"tree\">\n".to_owned();
    for root in nodes.iter().filter(is_root) {
        out += &branch(&nodes, root, 0, colour(&root.label));
    }
    out = out + "</div>\n" + &missing;
    let mut reasons: Vec<&str> = nodes.iter().filter_map(|n| n.no_error.as_deref()).collect();
    reasons.sort();
    reasons.dedup();
    for why in reasons {
        out += &remark("no ±:", why);
    }
    out
}

/// A node and those below it. A table names parents before children; deeper than any table is a circle.
fn branch(nodes: &[&NodeRow], node: &NodeRow, depth: usize, colour: &str) -> String {
    const DEEPEST: usize = 16;
    let value = node.value.map(|value| share_with_error(value, node.error)).unwrap_or_default();
    let drawn = node
        .value
        .map(|value| bar(value, node.error.map(|error| (value - error, value + error)), colour));
    let mark = if node.flagged { "<b title=\"over its threshold\">●</b> " } else { "" };
    let line = format!(
        "<span class=\"name\" style=\"--depth:{depth}\">{mark}{}</span><span class=\"value\">{value}</span>{}\
         <span class=\"marks\">{}</span>",
        xml(&node.label),
        drawn.unwrap_or_default(),
        xml(&marks(node).join(" · "))
    );
    let mut below = counts(node);
    let children = nodes.iter().filter(|n| n.parent.as_ref() == Some(&node.id) && n.id != node.id);
    if depth < DEEPEST {
        children.for_each(|child| below += &branch(nodes, child, depth + 1, colour));
    }
    opening(row_class(node), node.flagged, &line, &below)
}

fn row_class(node: &NodeRow) -> &'static str {
    match (node.bottleneck, node.flagged) {
        (true, _) => "node flagged bottleneck",
        (_, true) => "node flagged",
        _ => "node",
    }
}

fn marks(node: &NodeRow) -> Vec<String> {
    let mut marks = Vec::new();
    marks.extend(node.bottleneck.then(|| "◀ bottleneck".to_owned()));
    marks.extend(node.mismeasured.then(|| "? mismeasured".to_owned()));
    let running = node.running.filter(|share| *share < 0.995);
    marks.extend(running.map(|share| format!("running {:.0} %", 100.0 * share)));
    marks.extend(node.split.then(|| "split over groups".to_owned()));
    marks.extend(node.estimate.as_ref().map(|why| format!("estimate: {why}")));
    if !node.related.is_empty() {
        marks.push(format!("→ {}", node.related.join(", ")));
    }
    marks
}

/// The counts that a node uses, closed.
fn counts(node: &NodeRow) -> String {
    if node.counts.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for count in &node.counts {
        let value = match (count.value, &count.missing) {
            (Some(value), _) => format::count(value),
            (None, why) => why.clone().unwrap_or_else(|| "missing".to_owned()),
        };
        let running = count.running.filter(|share| *share < 0.995);
        let running = running.map(|s| format!(" running {:.0} %", 100.0 * s)).unwrap_or_default();
        let _ = writeln!(
            rows,
            "<tr><td class=\"number\">{}</td><td><code>{}</code>{running}</td></tr>",
            xml(&value),
            xml(&count.event)
        );
    }
    format!(
        "<details class=\"counts\"><summary>counts of {}</summary><table>\n{rows}</table></details>\n",
        xml(&node.label)
    )
}

/// Metrics by name.
fn metrics(name: &str, rows: Vec<&InfoRow>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let (rows, missing): (Vec<&InfoRow>, Vec<&InfoRow>) =
        rows.into_iter().partition(|row| row.value.is_some());
    let missing = missing.iter().map(|row| (row.label.as_str(), row.missing.as_deref()));
    let missing = not_measured(missing);
    if rows.is_empty() {
        return format!("<h3>{name}</h3>\n{missing}");
    }
    let mut body = String::new();
    for row in rows {
        let Some(value) = row.value else { continue };
        let value = match row.unit == "ratio" {
            true => share_with_error(value, row.error),
            false => {
                let error = row.error.map(|e| format!(" ±{}", format::number(e)));
                xml(&format!("{}{} {}", format::number(value), error.unwrap_or_default(), row.unit))
            }
        };
        let mark = if row.over == Some(true) { "● " } else { "" };
        let _ = writeln!(
            body,
            "<tr><td>{mark}{}</td><td class=\"number\">{value}</td></tr>",
            xml(&row.label)
        );
    }
    format!("<h3>{name}</h3>\n<table>\n{body}</table>\n{missing}")
}
