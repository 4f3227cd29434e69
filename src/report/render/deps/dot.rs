//! The document as a graph for Graphviz.

use crate::documents::deps::Document;
use isa::deps::{Kind, Order, Overlap};
use std::fmt::Write as _;

/// Renders `document` for `dot`: instructions from top to bottom, arrows of later iterations
/// dashed, the slowest recurrence bold.
pub fn dot(document: &Document) -> String {
    let mut out = String::from(
        "digraph dependencies {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n",
    );
    let critical = document.recurrences.first();
    let steps = critical.map(|c| c.path.as_slice()).unwrap_or_default();
    if let Some(cycle) = critical {
        let over = if cycle.iterations == 1 { "iteration" } else { "iterations" };
        let range = span(cycle.low, cycle.high);
        let text = format!(
            "bold: critical cycle, {range} cycles an iteration ({} {over})",
            cycle.iterations
        );
        let _ = writeln!(out, "  label={};", quoted(&text));
    }
    for (index, instruction) in document.instructions.iter().enumerate() {
        let label = format!("{}  {}", instruction.address, instruction.text);
        let width = if steps.iter().any(|s| s.index == index) { 3 } else { 1 };
        let _ = writeln!(out, "  i{index} [label={}, penwidth={width}];", quoted(&label));
    }
    for index in 1..document.instructions.len() {
        let _ = writeln!(out, "  i{} -> i{index} [style=invis, weight=100];", index - 1);
    }
    for d in &document.dependencies {
        let slowest = d.order == Order::Raw && steps.iter().any(|s| s.carries(d));
        let delta = if d.delta > 0 { format!(" -{}", d.delta) } else { String::new() };
        let cycles = match &d.latency {
            Some(latency) => format!(": {}", span(latency.low, latency.high)),
            None => String::new(),
        };
        let color = match (d.order, d.kind, d.overlap) {
            (Order::War | Order::Waw, ..) => "gray",
            (_, Kind::Memory, Some(Overlap::Partial | Overlap::Blocked)) => "red",
            (_, Kind::Memory, _) => "blue",
            (_, Kind::Flag, _) => "darkgreen",
            _ => "black",
        };
        let style = if d.delta > 0 { "dashed" } else { "solid" };
        let width = if slowest { 3 } else { 1 };
        let _ = writeln!(
            out,
            "  i{} -> i{} [label={}, color={color}, style={style}, penwidth={width}, constraint=false];",
            d.indices[0],
            d.indices[1],
            quoted(&format!("{}{delta}{cycles}", d.through)),
        );
    }
    out.push_str("}\n");
    out
}

fn span(low: f64, high: f64) -> String {
    let number = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if low == high { number(low) } else { format!("{}–{}", number(low), number(high)) }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
