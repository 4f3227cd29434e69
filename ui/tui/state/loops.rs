//! The loops of a function, drawn beside its blocks.

use profile::hot::AnnotatedBlock;
use std::collections::{HashMap, HashSet};

/// A loop, drawn from its head to the block that jumps back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    /// Indices of the first and last block that it spans.
    pub from: usize,
    pub to: usize,
    /// Whether the head is the first of them: a compiler may put it last.
    pub head_first: bool,
    /// Column that it is drawn in; 0 is the outermost.
    pub column: usize,
}

/// Maximum columns; loops nested deeper are not drawn.
const MAX_COLUMNS: usize = 6;

/// The loops of `blocks`, by their back edges; overlapping ones in different columns.
pub fn loops(blocks: &[AnnotatedBlock]) -> Vec<Loop> {
    let index: HashMap<u64, usize> =
        blocks.iter().enumerate().map(|(i, b)| (b.block.start, i)).collect();
    let mut all: Vec<Loop> = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        if let Some(&head) = block.back_to.and_then(|start| index.get(&start)) {
            let (from, to) = (head.min(i), head.max(i));
            all.push(Loop { from, to, head_first: head <= i, column: 0 });
        }
    }
    // The widest loops get the outermost columns.
    all.sort_by_key(|l| (std::cmp::Reverse(l.to - l.from), l.from));
    for i in 0..all.len() {
        let (before, rest) = all.split_at_mut(i);
        let one = &mut rest[0];
        let overlaps = |o: &&Loop| o.from <= one.to && one.from <= o.to;
        let taken: HashSet<usize> = before.iter().filter(overlaps).map(|o| o.column).collect();
        one.column = (0..=before.len()).find(|c| !taken.contains(c)).unwrap_or(0);
    }
    all.retain(|l| l.column < MAX_COLUMNS);
    all
}
