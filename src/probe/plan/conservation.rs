//! Flow conservation: a block is entered as often as its incoming edges are taken, and left as often. This gives counts
//! of edges and of blocks without a probe, and checks all counts.
//!
//! Block ends joined by edges form a component, and each block leads from one component to another. As much flow enters
//! a component as leaves it; the counts of blocks have no other relation (Knuth and Stevenson, BIT 13, 1973).

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

/// An edge between two blocks; `None` is outside.
pub(super) type Edge = (Option<usize>, Option<usize>);

/// The components at both ends of every block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Components {
    /// Component at the start of each block.
    pub into: Vec<usize>,
    /// Component at the end of each block.
    pub out: Vec<usize>,
    /// The component outside of the function. It has no sum, due to other functions and calls that
    /// do not return.
    pub outside: usize,
    /// Number of components.
    pub number: usize,
}

/// All edges. Every block of a function with unknown jumps may be entered from outside.
pub(super) fn edges(function: &Function) -> Vec<Edge> {
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

/// The components of a function.
pub(super) fn components(function: &Function) -> Components {
    let blocks = function.blocks.len();
    // Starts of blocks, ends of blocks, and the outside.
    let mut joined = Joined::new(2 * blocks + 1);
    for (from, to) in edges(function) {
        let from = from.map_or(2 * blocks, |block| blocks + block);
        joined.join(from, to.unwrap_or(2 * blocks));
    }
    let into = (0..blocks).map(|block| joined.find(block)).collect();
    let out = (0..blocks).map(|block| joined.find(blocks + block)).collect();
    Components { into, out, outside: joined.find(2 * blocks), number: 2 * blocks + 1 }
}

/// Disjoint sets of numbers.
pub(super) struct Joined(Vec<usize>);

impl Joined {
    /// One set per number.
    pub fn new(number: usize) -> Self {
        Self((0..number).collect())
    }

    /// The representative of a number's set.
    pub fn find(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    /// Joins two sets; false if they were one.
    pub fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.find(one), self.find(other));
        self.0[other] = one;
        one != other
    }
}

/// Most blocks without samples between two with samples that count as run.
const PASSED: usize = 8;

/// The blocks that need no probe. `samples` and `costs` (of its probe per execution) are by block;
/// blocks that cannot have a probe have no cost.
///
/// Blocks without a probe may form no cycle between the components of the function: a maximum spanning tree by executions
/// (Knuth and Stevenson, 1973; Ball and Larus, TOPLAS 16, 1994). Blocks that hardly run have a probe: it costs nothing, and
/// sums from which no count is derived check all counts.
pub(super) fn spare(function: &Function, costs: &[Option<f64>], samples: &[u64]) -> Vec<usize> {
    let components = components(function);
    let mut joined = Joined::new(components.number);
    let mut join = |block: usize| joined.join(components.into[block], components.out[block]);
    for (block, cost) in costs.iter().enumerate() {
        if cost.is_none() {
            join(block);
        }
    }
    let runs = runs(function, samples);
    let cost = |block: usize| costs[block].unwrap_or(0.0) * runs[block];
    let mut hot: Vec<usize> = (0..costs.len()).filter(|block| cost(*block) > 0.0).collect();
    hot.sort_by(|a, b| cost(*b).total_cmp(&cost(*a)));
    hot.retain(|block| join(*block));
    hot
}

/// Rough frequency of each block: samples per instruction. A block without samples between two with
/// samples runs, too.
fn runs(function: &Function, samples: &[u64]) -> Vec<f64> {
    let blocks = &function.blocks;
    let each = |(samples, block): (&u64, &crate::facts::Block)| {
        *samples as f64 / block.instructions.len().max(1) as f64
    };
    let mut runs: Vec<f64> = samples.iter().zip(blocks).map(each).collect();
    let mut before = vec![Vec::new(); blocks.len()];
    for (number, block) in blocks.iter().enumerate() {
        block.successors.iter().for_each(|to| before[*to].push(number));
    }
    for _ in 0..PASSED {
        let most = |all: &[usize]| all.iter().map(|b| runs[*b]).fold(0.0, f64::max);
        let passed = |number: usize| {
            let block = &blocks[number];
            let from = if block.is_entered { f64::INFINITY } else { most(&before[number]) };
            runs[number].max(from.min(most(&block.successors)))
        };
        runs = (0..blocks.len()).map(passed).collect();
    }
    runs
}
