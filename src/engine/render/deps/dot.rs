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
    for (index, instruction) in document.instructions.iter().enumerate() {
        let label = format!("{}  {}", instruction.address, instruction.text);
        let _ = writeln!(out, "  i{index} [label={}];", quoted(&label));
    }
    for index in 1..document.instructions.len() {
        let _ = writeln!(out, "  i{} -> i{index} [style=invis, weight=100];", index - 1);
    }
    let steps = document.recurrences.first().map(|c| c.path.as_slice()).unwrap_or_default();
    for d in &document.dependencies {
        let slowest = d.order == Order::Raw
            && steps
                .iter()
                .any(|s| s.index == d.indices[1] && s.delta == d.delta && s.through == d.through);
        let delta = if d.delta > 0 { format!(" -{}", d.delta) } else { String::new() };
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
            quoted(&format!("{}{delta}", d.through)),
        );
    }
    out.push_str("}\n");
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
