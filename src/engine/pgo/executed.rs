//! The code that a run executed: instructions, taken jumps, and how many lines and pages of memory they lie in.

use super::Profile;
use report::documents::pgo::{EdgeKind, EdgeRow, How, Pgo};
use report::documents::trial::Executed;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a cache line, and of a page.
const LINE: u64 = 64;
const PAGE: u64 = 4096;
/// Share of the executed bytes that is called hot.
const HOT: f64 = 0.99;

/// Of a profile with its document.
pub(super) fn executed(profile: &Profile, document: &Pgo) -> Executed {
    let passed = |is_asked: &dyn Fn(&EdgeRow) -> bool| -> u64 {
        let own = document.edges.iter().filter(|edge| is_asked(edge));
        own.filter_map(|edge| edge.count).fold(0, u64::saturating_add)
    };
    let taken_jumps = passed(&|edge| matches!(edge.kind, EdgeKind::Jump | EdgeKind::Tail));
    let calls = passed(&|edge| edge.kind == EdgeKind::Call);
    let fitted = passed(&|edge| edge.kind != EdgeKind::Next && edge.how >= How::Sampled);
    let (lines, pages) = (parts(profile, LINE), parts(profile, PAGE));
    Executed {
        instructions: document.executed.known(),
        taken_jumps,
        calls,
        lines: lines.len(),
        hot_lines: hot(lines),
        pages: pages.len(),
        hot_pages: hot(pages),
        unknown: document.executed.unknown + document.passed_edges.unknown,
        fitted: fitted as f64 / (taken_jumps.saturating_add(calls) as f64).max(1.0),
    }
}

/// Executed bytes in each part of so many bytes that has some.
fn parts(profile: &Profile, size: u64) -> Vec<f64> {
    let mut all: BTreeMap<u64, f64> = BTreeMap::new();
    for (function, flow) in profile.code.functions.iter().zip(&profile.flows) {
        for (block, found) in function.facts.blocks.iter().zip(&flow.blocks) {
            let Some(count) = found.number().filter(|count| *count > 0) else { continue };
            for (part, bytes) in within(block.start..block.end, size) {
                *all.entry(part).or_default() += count as f64 * bytes as f64;
            }
        }
    }
    all.into_values().collect()
}

/// The parts that a range is in, and its bytes in each.
fn within(range: Range<u64>, size: u64) -> impl Iterator<Item = (u64, u64)> {
    let own = range.start / size..range.end.div_ceil(size);
    own.map(move |part| {
        let (start, end) = (range.start.max(part * size), range.end.min((part + 1) * size));
        (part, end - start)
    })
}

/// How many of these together have most of the sum, the largest first.
fn hot(mut parts: Vec<f64>) -> usize {
    parts.sort_by(|a, b| b.total_cmp(a));
    let most = HOT * parts.iter().sum::<f64>();
    let mut sum = 0.0;
    let before = parts.iter().take_while(|part| {
        let is_below = sum < most;
        sum += **part;
        is_below
    });
    before.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_in_each_line_that_it_touches() {
        let of = |range| within(range, 64).collect::<Vec<_>>();
        assert_eq!(of(0x10..0x20), [(0, 16)]);
        assert_eq!(of(0x30..0x90), [(0, 16), (1, 64), (2, 16)]);
        assert_eq!(of(0x40..0x80), [(1, 64)]);
    }

    /// By hand: of 1000, 990 are 99 %.
    #[test]
    fn hot_parts_are_the_fewest_with_most() {
        assert_eq!(hot(vec![5.0, 900.0, 5.0, 90.0]), 2);
        assert_eq!(hot(vec![500.0, 489.0, 11.0]), 3);
        assert_eq!(hot(Vec::new()), 0);
    }
}
