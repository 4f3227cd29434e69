//! A profile for optimisers as text, and as BOLT, llvm-profgen and linkers read it.

use super::aggregated::{self, Counts};
use crate::documents::pgo::{BlockRow, EdgeKind, EdgeRow, Pgo};
use crate::format::several;
use std::fmt::Write as _;

/// BOLT's pre-aggregated profile: straight code from each block to the next.
pub fn bolt(document: &Pgo) -> String {
    let next = document.edges.iter().filter(|edge| edge.kind == EdgeKind::Next);
    let range = |edge: &EdgeRow| Some(((edge.block.0, edge.to.0), edge.count?));
    aggregated::bolt(&counts(document, next.filter_map(range)))
}

/// llvm-profgen's unsymbolized profile: straight code is a block each.
pub fn unsymbolized(document: &Pgo) -> String {
    let range = |block: &BlockRow| Some(((block.start.0, block.last.0), block.count?));
    aggregated::unsymbolized(&counts(document, document.blocks.iter().filter_map(range)))
}

/// Symbols, one per line: `--symbol-ordering-file` of lld, `--section-ordering-file` of gold.
pub fn order(document: &Pgo) -> String {
    document.order.iter().map(|name| format!("{name}\n")).collect()
}

fn counts(document: &Pgo, ranges: impl Iterator<Item = ((u64, u64), u64)>) -> Counts {
    let taken = document.edges.iter().filter(|edge| edge.kind != EdgeKind::Next);
    let edge = |edge: &EdgeRow| Some(((edge.from.0, edge.to.0), (edge.count?, 0)));
    let entries = document.functions.iter().filter_map(|one| Some((one.start.0, one.entries?)));
    Counts {
        ranges: ranges.filter(|(_, count)| *count > 0).collect(),
        edges: taken.filter_map(edge).filter(|(_, (count, _))| *count > 0).collect(),
        entries: entries.filter(|(_, count)| *count > 0).collect(),
        ..Counts::default()
    }
}

/// What the profile rests on.
pub fn text(document: &Pgo) -> String {
    let mut out = String::new();
    let unknown: Vec<&str> = document
        .functions
        .iter()
        .filter(|one| one.instructions.is_none())
        .map(|one| one.name.as_str())
        .collect();
    let executed = &document.instructions;
    let of = several(document.functions.len() as u64, "function");
    let runs = several(document.runs as u64, "run");
    let _ = writeln!(out, "{}: {of} in {runs}", document.module);
    for (name, of) in [("instructions", executed), ("edges", &document.passed)] {
        let parts = [
            ("counted", of.counted),
            ("derived", of.derived),
            ("sampled", of.sampled),
            ("fitted", of.fitted),
        ];
        let shown = parts.iter().filter(|(_, part)| *part > 0);
        let shown: Vec<String> =
            shown.map(|(how, part)| format!("{:.2} % {how}", of.percent(*part))).collect();
        let _ = writeln!(out, "  {:>16} {name}: {}", of.known(), shown.join(", "));
    }
    if let [first, rest @ ..] = unknown.as_slice() {
        let more =
            if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let _ = writeln!(
            out,
            "  {:>16} instructions of {first}{more}: no count, not in the profile",
            "?"
        );
    }
    out
}
