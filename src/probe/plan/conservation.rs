//! Flow conservation: a block is entered as often as its incoming edges are taken, and left as
//! often. This gives counts of edges and of blocks without a probe, and checks all counts.

use super::components::{Edge, components, edges};
use crate::facts::{Block, Exit, Function};

/// Counts of a function derived from those of some blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Solved {
    /// Counts of blocks, if they follow.
    pub blocks: Vec<Option<i64>>,
    /// Edges between blocks, with their counts, if they follow.
    pub edges: Vec<(usize, usize, Option<i64>)>,
    /// Checked sums: those from which no count was derived.
    pub checked: usize,
    /// Blocks whose sums disagree: block, sum of edges, own count.
    pub contradictions: Vec<(usize, i64, i64)>,
    /// Blocks with a negative count, of their own or of an edge.
    pub negative: Vec<(usize, i64)>,
}

impl Solved {
    /// Whether there is no contradiction.
    pub fn is_consistent(&self) -> bool {
        self.contradictions.is_empty() && self.negative.is_empty()
    }
}

/// Counts of blocks: the `counted` ones and those that follow from them.
pub(super) fn derived(function: &Function, counted: &[Option<i64>]) -> Vec<Option<i64>> {
    let mut solved = Solved { blocks: counted.to_vec(), ..Solved::default() };
    if counted.iter().any(Option::is_none) {
        sums(function, 0, &mut solved);
    }
    solved.blocks
}

/// Derives counts from the `counted` blocks. Sums may differ by `slack`, since threads may end
/// inside a block.
pub fn solve(function: &Function, counted: &[Option<i64>], slack: i64) -> Solved {
    let mut solved = Solved { blocks: counted.to_vec(), ..Solved::default() };
    solved.blocks.resize(function.blocks.len(), None);
    sums(function, slack, &mut solved);
    let edges = edges(function);
    let mut taken: Vec<Option<i64>> = vec![None; edges.len()];
    let sides = sides(&edges, &function.blocks);
    let mut changed = true;
    while changed {
        changed = false;
        for (block, side) in &sides {
            let mut unknown = side.iter().copied().filter(|e| taken[*e].is_none());
            let (Some(edge), None) = (unknown.next(), unknown.next()) else { continue };
            let Some(count) = solved.blocks[*block] else { continue };
            let sum: i64 = side.iter().filter_map(|e| taken[*e]).sum();
            taken[edge] = Some(count - sum);
            changed = true;
        }
    }
    let may_end =
        |edge: &Edge| matches!(edge, (Some(b), None) if function.blocks[*b].exit == Exit::MayEnd);
    // A call may return twice (setjmp, fork) or not at all.
    let negative = |e: &usize| taken[*e].filter(|n| *n < -slack && !may_end(&edges[*e]));
    for (block, side) in &sides {
        let Some(count) = solved.blocks[*block] else { continue };
        let is_known = solved.contradictions.iter().any(|(b, ..)| b == block)
            || solved.negative.iter().any(|(b, _)| b == block);
        let below = Some(count).filter(|n| *n < -slack).or(side.iter().find_map(negative));
        if let (Some(below), false) = (below, is_known) {
            solved.negative.push((*block, below));
        }
    }
    let inside = |(edge, taken): (&Edge, &Option<i64>)| Some((edge.0?, edge.1?, *taken));
    solved.edges = edges.iter().zip(&taken).filter_map(inside).collect();
    solved
}

/// Derives the counts of blocks from the flow through each component, and checks the other sums.
fn sums(function: &Function, slack: i64, solved: &mut Solved) {
    let components = components(function);
    // By component: blocks that lead there (1) and blocks entered from there (-1).
    let mut sums: Vec<Vec<(usize, i64)>> = vec![Vec::new(); components.number];
    for block in 0..function.blocks.len() {
        let (from, to) = (components.into[block], components.out[block]);
        if from != to {
            sums[to].push((block, 1));
            sums[from].push((block, -1));
        }
    }
    sums[components.outside].clear();
    sums.retain(|sum| !sum.is_empty());
    let mut derived = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for sum in &sums {
            let mut unknown = sum.iter().filter(|(block, _)| solved.blocks[*block].is_none());
            let (Some((block, sign)), None) = (unknown.next(), unknown.next()) else { continue };
            solved.blocks[*block] = Some(-sign * total(sum, &solved.blocks));
            derived += 1;
            changed = true;
        }
    }
    let known = |sum: &&Vec<(usize, i64)>| sum.iter().all(|(b, _)| solved.blocks[*b].is_some());
    let known: Vec<_> = sums.iter().filter(known).collect();
    solved.checked = known.len().saturating_sub(derived);
    for sum in known {
        let (more, (first, sign)) = (total(sum, &solved.blocks), sum[0]);
        if more.abs() > slack {
            let count = solved.blocks[first].unwrap_or(0);
            solved.contradictions.push((first, count - sign * more, count));
        }
    }
}

/// Flow into a component minus flow out of it, over blocks with known counts.
fn total(sum: &[(usize, i64)], blocks: &[Option<i64>]) -> i64 {
    sum.iter().filter_map(|(block, sign)| Some(sign * blocks[*block]?)).sum()
}

/// The incoming and the outgoing edges of every block; only the incoming ones if an unknown jump
/// may lead into it, since it is then left more often than entered.
fn sides(edges: &[Edge], blocks: &[Block]) -> Vec<(usize, Vec<usize>)> {
    let mut into = vec![Vec::new(); blocks.len()];
    let mut out = vec![Vec::new(); blocks.len()];
    for (number, (from, to)) in edges.iter().enumerate() {
        if let Some(from) = from {
            out[*from].push(number);
        }
        if let Some(to) = to {
            into[*to].push(number);
        }
    }
    let is_whole = |block: &usize| blocks[*block].certain == blocks[*block].instructions.len();
    let out = out.into_iter().enumerate().filter(|(block, _)| is_whole(block));
    into.into_iter().enumerate().chain(out).collect()
}
