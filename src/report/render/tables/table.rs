//! One table: the processors, counters and sources it states, then its tree and metrics.

use super::encoding::encoding;
use std::fmt::Write as _;
use tma::tables::{Node, NodeKind, Table};

/// The table's facts and tree; `all` adds the bottlenecks view, info metrics and events.
pub fn table(table: &Table, all: bool) -> String {
    let mut out = String::new();
    facts(&mut out, table);
    for (_, node) in table.tree() {
        line(&mut out, node, usize::try_from(node.level).unwrap_or(1).saturating_sub(1));
    }
    if all {
        metrics(&mut out, table);
        events(&mut out, table);
    } else {
        let others = table.nodes.len() - table.tree().count();
        if others > 0 {
            let _ = writeln!(out, "\n{others} metrics outside the tree: --all shows them");
        }
    }
    out
}

fn facts(out: &mut String, table: &Table) {
    let mut rows = vec![("table", format!("{}: {}", table.name, table.title))];
    let buffer = match table.pipeline.reorder_buffer {
        0 => String::new(),
        n => format!(", reorder buffer of {n}"),
    };
    rows.push(("pipeline", format!("{} slots per cycle{buffer}", table.pipeline.width)));
    rows.push(("counters", counters(table)));
    rows.extend(table.tma.iter().map(|v| ("method", format!("TMA {v}"))));
    rows.extend(table.source.iter().map(|s| ("source", s.clone())));
    rows.extend(table.notes.iter().map(|n| ("note", n.clone())));
    let mut last = "";
    for (key, text) in rows {
        let _ = writeln!(out, "{:<9} {text}", if key == last { "" } else { key });
        last = key;
    }
    out.push('\n');
}

fn counters(table: &Table) -> String {
    let counters = &table.counters;
    let mut text = format!("{} general", counters.general);
    if counters.general_smt != counters.general {
        let _ = write!(text, " ({} with SMT)", counters.general_smt);
    }
    let _ = write!(text, ", {} fixed", counters.fixed);
    if counters.topdown_levels > 0 {
        let _ = write!(text, ", fixed top-down metrics for level 1 to {}", counters.topdown_levels);
    }
    text
}

fn metrics(out: &mut String, table: &Table) {
    for (kind, what) in [(NodeKind::Bottleneck, "bottlenecks view"), (NodeKind::Info, "metrics")] {
        if table.of_kind(kind).next().is_some() {
            let _ = writeln!(out, "\n{what}");
        }
        for (_, node) in table.of_kind(kind) {
            line(out, node, 1);
        }
    }
}

fn events(out: &mut String, table: &Table) {
    out.push_str("\nevents\n");
    for event in &table.events {
        let _ = writeln!(out, "  {} {}", event.name, encoding(table, event));
    }
}

fn line(out: &mut String, node: &Node, depth: usize) {
    let indent = "  ".repeat(depth);
    let unit = node.spec.unit.as_deref().filter(|u| !u.is_empty());
    let unit = unit.map(|u| format!(" [{u}]")).unwrap_or_default();
    let estimate = if node.spec.estimate.is_some() { " (estimate)" } else { "" };
    let _ = writeln!(out, "{indent}{}{unit}{estimate} = {}", node.id, node.spec.formula);
    if let Some(over) = &node.spec.over {
        let _ = writeln!(out, "{indent}    over: {over}");
    }
}
