//! A profile for optimisers as text, and as BOLT, llvm-profgen and linkers read it.

use super::aggregated::{self, Counts};
use crate::documents::pgo::{BlockRow, ClusterRow, EdgeKind, EdgeRow, Pgo};
use crate::format::several;
use profile::files::Program;
use std::fmt::Write as _;

/// BOLT's pre-aggregated profile: straight code from each block to the next.
pub fn bolt(document: &Pgo) -> String {
    let next = document.edges.iter().filter(|edge| edge.kind == EdgeKind::Next);
    let range = |edge: &EdgeRow| Some(((edge.block.0, edge.to.0), edge.count?));
    aggregated::bolt(&counts(document, next.filter_map(range)))
}

/// llvm-profgen's unsymbolized profile: straight code is a block each.
pub fn unsymbolized(document: &Pgo) -> String {
    aggregated::unsymbolized(&counts(document, blocks(document)))
}

/// AutoFDO's text profile: straight code is a block each.
pub fn autofdo(document: &Pgo, program: &Program) -> String {
    aggregated::autofdo(&counts(document, blocks(document)), program)
}

/// Symbols, one per line: `--symbol-ordering-file` of lld, `--section-ordering-file` of gold.
pub fn order(document: &Pgo) -> String {
    document.order.iter().map(|name| format!("{name}\n")).collect()
}

/// `-fbasic-block-sections=list=` of clang: the first version of LLVM's BasicBlockSectionsProfileReader, as Propeller
/// writes it. Blocks that it does not name are placed with other cold code.
pub fn clusters(of: &[ClusterRow]) -> String {
    let mut out = "v1\n".to_owned();
    for row in of {
        let blocks: Vec<String> = row.blocks.iter().map(u64::to_string).collect();
        let _ = writeln!(out, "f {}\nc {}", row.function, blocks.join(" "));
    }
    out
}

/// First and last instructions of the blocks with a count.
fn blocks(document: &Pgo) -> impl Iterator<Item = ((u64, u64), u64)> {
    let range = |block: &BlockRow| Some(((block.start.0, block.last.0), block.count?));
    document.blocks.iter().filter_map(range)
}

fn counts(document: &Pgo, ranges: impl Iterator<Item = ((u64, u64), u64)>) -> Counts {
    let taken = document.edges.iter().filter(|edge| edge.kind != EdgeKind::Next);
    let edge = |edge: &EdgeRow| Some(((edge.from.0, edge.to.0), edge.count?));
    let entries =
        document.functions.iter().filter_map(|one| Some((one.start.0, one.other_entries?)));
    let mut all =
        Counts { entries: entries.filter(|(_, count)| *count > 0).collect(), ..Counts::default() };
    // Several rows may have the same ends.
    for (ends, count) in ranges.filter(|(_, count)| *count > 0) {
        let sum = all.ranges.entry(ends).or_default();
        *sum = sum.saturating_add(count);
    }
    for (ends, count) in taken.filter_map(edge).filter(|(_, count)| *count > 0) {
        let (sum, _) = all.edges.entry(ends).or_default();
        *sum = sum.saturating_add(count);
    }
    all
}

/// What the profile rests on.
pub fn text(document: &Pgo) -> String {
    let mut out = String::new();
    let unknown: Vec<&str> = document
        .functions
        .iter()
        .filter(|one| one.executed.is_none())
        .map(|one| one.name.as_str())
        .collect();
    let executed = &document.executed;
    let of = several(document.functions.len() as u64, "function");
    let runs = several(document.runs as u64, "run");
    let _ = writeln!(out, "{}: {of} in {runs}", document.module);
    for (name, of) in [("instructions", executed), ("edges", &document.passed_edges)] {
        let parts = [
            ("counted", of.counted),
            ("derived", of.derived),
            ("sampled", of.sampled),
            ("fitted", of.fitted),
        ];
        let shown = parts.iter().filter(|(_, part)| *part > 0);
        let shown: Vec<String> =
            shown.map(|(how, part)| format!("{:.2} % {how}", of.percent(*part))).collect();
        let colon = if shown.is_empty() { "" } else { ": " };
        let _ = writeln!(out, "  {:>16} {name}{colon}{}", of.known(), shown.join(", "));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::pgo::How;
    use tma::Address;

    fn edge(kind: EdgeKind, to: u64, count: u64) -> EdgeRow {
        let (block, from, to) = (Address(0x10), Address(0x18), Address(to));
        EdgeRow { block, from, to, kind, count: Some(count), how: How::Sampled }
    }

    #[test]
    fn counts_of_the_same_edge_are_added_up() {
        let (jump, next) = (EdgeKind::Jump, EdgeKind::Next);
        let edges =
            [edge(jump, 0x40, 999), edge(jump, 0x40, 2), edge(next, 0x20, 7), edge(next, 0x20, 1)];
        let document = Pgo { edges: edges.to_vec(), ..Pgo::default() };
        assert_eq!(bolt(&document), "B 18 40 1001 0\nF 10 20 8\n");
    }
}
