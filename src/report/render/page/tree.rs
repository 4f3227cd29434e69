//! The counted tree and the metrics beside it, for each part of the measurement; the estimated tree; functions, loops
//! and blocks with their parts.

use super::code::columns;
use super::pieces::{
    bar, code as name, colour, legend, not_measured, opening, remark, section, share,
    share_with_error, stacked, xml,
};
use crate::documents::estimate::{Estimate, Instruction, Node, Row};
use crate::documents::report::{InfoRow, NodeRow, Place, Report};
use crate::format;
use crate::render::report::{Style, remarks};
use std::collections::HashSet;
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
    let remarks = remarks(node, &Style { verbose: true, ..Style::default() });
    let line = format!(
        "<span class=\"name\" style=\"--depth:{depth}\">{mark}{}</span><span class=\"value\">{value}</span>{}\
         <span class=\"marks\">{}</span>",
        xml(&node.label),
        drawn.unwrap_or_default(),
        xml(&remarks.join(" · "))
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

/// Rows with a command, as the text has at most three, and their least share of the time.
const COMMANDS: usize = 3;
const WORTH: f64 = 0.1;

/// The estimated tree; nothing if it was not asked for.
pub(super) fn estimated_tree(report: &Report) -> String {
    let Some(estimate) = &report.estimate else { return String::new() };
    let nodes = estimate.program.parts.tree();
    let (none, shown): (Vec<&Node>, Vec<&Node>) =
        nodes.iter().partition(|one| one.share.has_value() && one.share.high <= 0.0);
    let mut body = "<div class=\"tree\">\n".to_owned();
    shown.iter().for_each(|one| body += &node(one));
    body += "</div>\n";
    if !none.is_empty() {
        let labels: Vec<&str> = none.iter().map(|one| one.label).collect();
        let _ = writeln!(
            body,
            "<p><small>excluded, with none of the time: {}</small></p>",
            labels.join(", ")
        );
    }
    section("estimate", "Estimated top-down", &body)
}

/// Functions, loops and blocks by what their time goes to, and what all of it rests on.
pub(super) fn parts(report: &Report) -> String {
    let Some(estimate) = &report.estimate else { return String::new() };
    let mut body = legend(estimate.program.parts.iter().map(|(part, _)| part.label()));
    let (functions, loops) = (estimate.functions.iter().collect(), estimate.loops.iter().collect());
    let blocks: Vec<&Row> = estimate.blocks_outside_of_loops().map(|(_, row)| row).collect();
    let worth = worth_a_command(estimate);
    for (heading, rows) in [("Functions", functions), ("Loops", loops), ("Blocks", blocks)] {
        if !rows.is_empty() {
            let _ = writeln!(body, "<h3>{heading}</h3>");
            for of in rows {
                let is_worth = worth.iter().any(|one| std::ptr::eq(*one, of));
                body += &row(of, heading == "Functions", is_worth);
            }
        }
    }
    let run = |run: &crate::documents::estimate::Run| {
        format!("{} {}", run.run, format::seconds(run.seconds))
    };
    let runs: Vec<String> = estimate.runs.iter().map(run).collect();
    let _ = writeln!(
        body,
        "<p>{} of the time; runs: {}</p>",
        share(estimate.covered),
        xml(&runs.join(", "))
    );
    estimate.notes.iter().for_each(|note| body += &remark("note:", note));
    section("parts", "What their time goes to", &body)
}

/// The hottest loops and blocks with commands of their own: a function's is that of its hottest loop.
fn worth_a_command(estimate: &Estimate) -> Vec<&Row> {
    let blocks = estimate.blocks_outside_of_loops().map(|(_, row)| row);
    let pieces = estimate.loops.iter().chain(blocks);
    let mut rows: Vec<&Row> = pieces.filter(|row| row.share >= WORTH).collect();
    if rows.is_empty() {
        rows = estimate.functions.iter().filter(|row| row.share >= WORTH).collect();
    }
    rows.sort_by(|a, b| b.share.total_cmp(&a.share));
    let mut seen = HashSet::new();
    rows.retain(|row| !row.next.is_empty() && seen.insert(&row.next));
    rows.truncate(COMMANDS);
    rows
}

fn node(node: &Node) -> String {
    let of = &node.share;
    let (low, high) = format::percent_bounds(of.low, of.high);
    let line = format!(
        "<span class=\"name\" style=\"--depth:{}\">{}</span><span class=\"value\">{} <small>{low}–{high}</small>\
         </span>{}<span class=\"marks\">{}</span>",
        node.depth,
        xml(node.label),
        if of.has_value() { share(of.value) } else { "?".to_owned() },
        bar(of.value, Some((of.low, of.high)), colour(node.label)),
        xml(&of.source.label())
    );
    let why = of.reason.as_ref().map(|why| remark("or:", &why.to_string())).unwrap_or_default();
    opening("node", false, &line, &why)
}

fn row(of: &Row, is_function: bool, has_command: bool) -> String {
    let place = match is_function || of.start.is_none() {
        true => String::new(),
        false => format!("{} ", of.place()),
    };
    let head = of.head.map(|head| format!("head {head}"));
    let cycles = of.cycles_per_entry.map(|cycles| format!("{} cycles", format::cycles(cycles)));
    let isolated = of.isolated.map(|cycles| format!("{} in isolation", format::cycles(cycles)));
    let trips = of.trips.map(|trips| format!("{trips:.1} iterations an entry"));
    let about: Vec<String> = [head, cycles, isolated, trips].into_iter().flatten().collect();
    let line = format!(
        "<span class=\"value\">{}</span>{}<span class=\"what\">{} <small>{}</small></span>",
        share(of.share),
        stacked(of.parts.iter().map(|(part, of)| (part.label(), of.value))),
        name(&place, &of.name, ""),
        xml(&about.join(", "))
    );
    let mut below = said(of, has_command);
    let memory = of.memory.as_ref().filter(|text| !of.sentence.contains(*text));
    below += &memory.map(|text| remark("memory:", text)).unwrap_or_default();
    below += &code(&of.code, of.share);
    for line in &of.lines {
        let at = format!("{}:{}", line.file.rsplit('/').next().unwrap_or_default(), line.line);
        let shown = columns(1, line.share, &at, line.text.as_deref().unwrap_or_default());
        let _ = writeln!(
            below,
            "<div class=\"source\"><div class=\"instruction line\">{shown}</div></div>"
        );
    }
    opening("estimated", false, &line, &below)
}

/// Sentence of a row, and the command that shows more.
fn said(of: &Row, has_command: bool) -> String {
    let mut out = String::new();
    if !of.sentence.is_empty() {
        let _ = writeln!(out, "<p>{}</p>", xml(&of.sentence));
    }
    if has_command {
        out += &remark("next:", &of.next);
    }
    out
}

/// Instructions with their share of the row's time.
fn code(all: &[Instruction], whole: f64) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut out = "<div class=\"source\">\n".to_owned();
    for one in all {
        let part = if whole > 0.0 { one.share / whole } else { 0.0 };
        let mark = if one.critical { "◆ " } else { "" };
        let shown =
            columns(one.samples, part, &one.address.to_string(), &format!("{mark}{}", one.text));
        let _ = writeln!(out, "<div class=\"instruction line\">{shown}</div>");
    }
    out += "</div>\n";
    if all.iter().any(|one| one.critical) {
        out += &remark("◆", "on the loop-carried critical path");
    }
    out
}
