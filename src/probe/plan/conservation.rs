//! Flow conservation: a block is entered as often as its incoming edges are taken, and left as often.
//! From that follow counts of blocks without a probe, of edges, and whether all counts agree.

use crate::facts::{Exit, Function};

/// An edge: from and to which block; none is outside.
type Edge = (Option<usize>, Option<usize>);

/// Counts of a function that follow from those of some blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Solved {
    /// Of the blocks, where they follow.
    pub blocks: Vec<Option<i64>>,
    /// Of the edges between blocks, where they follow.
    pub edges: Vec<(usize, usize, Option<i64>)>,
    /// Sums that are checked: those that no count was derived from.
    pub checked: usize,
    /// The blocks whose sums do not agree, with what entered or left them and what they counted.
    pub contradictions: Vec<(usize, i64, i64)>,
}

/// Derives what follows from the `counted` blocks. Sums may differ by `slack`: what was inside a
/// block when a thread ended.
pub fn solve(function: &Function, counted: &[Option<i64>], slack: i64) -> Solved {
    let edges = edges(function);
    let mut blocks = counted.to_vec();
    blocks.resize(function.blocks.len(), None);
    let mut taken: Vec<Option<i64>> = vec![None; edges.len()];
    let sides = sides(&edges, blocks.len());
    let mut changed = true;
    while changed {
        changed = false;
        for (block, side) in &sides {
            let unknown: Vec<usize> =
                side.iter().copied().filter(|e| taken[*e].is_none()).collect();
            let sum: i64 = side.iter().filter_map(|e| taken[*e]).sum();
            match (blocks[*block], unknown.as_slice()) {
                (None, []) => blocks[*block] = Some(sum),
                (Some(count), [edge]) => taken[*edge] = Some(count - sum),
                _ => continue,
            }
            changed = true;
        }
    }
    let mut solved = Solved { blocks, ..Solved::default() };
    let mut sums = 0_usize;
    let may_end =
        |edge: &Edge| matches!(edge, (Some(b), None) if function.blocks[*b].exit == Exit::MayEnd);
    for (block, side) in &sides {
        let known: Option<Vec<i64>> = side.iter().map(|e| taken[*e]).collect();
        let (Some(known), Some(count)) = (known, solved.blocks[*block]) else { continue };
        sums += 1;
        let sum: i64 = known.iter().sum();
        // A call may return twice (setjmp, fork) or not at all.
        let is_negative = |e: &usize| taken[*e].is_some_and(|n| n < -slack) && !may_end(&edges[*e]);
        if (sum - count).abs() > slack || side.iter().any(is_negative) {
            solved.contradictions.push((*block, sum, count));
        }
    }
    let derived = |all: &[Option<i64>]| all.iter().flatten().count();
    let given = counted.iter().flatten().count();
    let derived = derived(&taken) + derived(&solved.blocks) - given;
    solved.checked = sums.saturating_sub(derived);
    let inside = |(edge, taken): (&Edge, &Option<i64>)| Some((edge.0?, edge.1?, *taken));
    solved.edges = edges.iter().zip(&taken).filter_map(inside).collect();
    solved
}

/// All edges. Every block of a function with unknown jumps may be entered from outside.
fn edges(function: &Function) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (number, block) in function.blocks.iter().enumerate() {
        if block.is_entered || !function.is_complete {
            edges.push((None, Some(number)));
        }
        edges.extend(block.successors.iter().map(|to| (Some(number), Some(*to))));
        if block.exit != Exit::None {
            edges.push((Some(number), None));
        }
    }
    edges
}

/// The incoming and the outgoing edges of every block.
fn sides(edges: &[Edge], blocks: usize) -> Vec<(usize, Vec<usize>)> {
    let mut into = vec![Vec::new(); blocks];
    let mut out = vec![Vec::new(); blocks];
    for (number, (from, to)) in edges.iter().enumerate() {
        if let Some(from) = from {
            out[*from].push(number);
        }
        if let Some(to) = to {
            into[*to].push(number);
        }
    }
    into.into_iter().enumerate().chain(out.into_iter().enumerate()).collect()
}
