//! Natural loops: a back edge goes from a latch to a header that dominates it, and the loop consists of the blocks that
//! reach the latch without passing the header. Cycles with several entries are irreducible and not loops.
//!
//! Immediate dominators are found by Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001). Blocks
//! without predecessors (landing pads, targets of unresolved jumps) are entries like the first one. All entries are
//! children of a virtual root.

use super::graph::Loop;

/// Limit on the summed sizes of all loops, per block of the function. It corresponds to a nesting
/// depth that compilers do not produce; in malicious input the sum can be quadratic.
const MEMBERS_PER_BLOCK: usize = 256;

#[derive(Default)]
pub(super) struct Loops {
    /// Outer ones first.
    pub loops: Vec<Loop>,
    /// Innermost loop that contains each block.
    pub innermost: Vec<Option<usize>>,
    /// Edges (from, to) that close an irreducible cycle.
    pub irreducible: Vec<(usize, usize)>,
    /// Whether loops are missing because a limit was reached.
    pub incomplete: bool,
}

/// The loops of the graph with these successors.
pub(super) fn loops(successors: &[Vec<usize>]) -> Loops {
    let predecessors = predecessors(successors);
    let Some(dominators) = Dominators::new(successors) else {
        let innermost = vec![None; successors.len()];
        return Loops { innermost, incomplete: true, ..Loops::default() };
    };
    let mut latches = vec![Vec::new(); successors.len()];
    let mut irreducible = Vec::new();
    for (from, next) in successors.iter().enumerate() {
        for &to in next.iter().filter(|&&to| dominators.is_backward(from, to)) {
            if dominators.dominates(to, from) {
                latches[to].push(from);
            } else {
                irreducible.push((from, to));
            }
        }
    }
    let mut room = MEMBERS_PER_BLOCK * (successors.len() + 16);
    let mut found = Vec::new();
    let mut incomplete = false;
    let mut inside = vec![usize::MAX; successors.len()];
    // Inner loops first, so that the limit drops the outermost ones.
    for &head in dominators.sequence.iter().rev() {
        let back_edges = std::mem::take(&mut latches[head]);
        if back_edges.is_empty() {
            continue;
        }
        let blocks = members(&predecessors, head, &back_edges, &mut inside, room);
        let Some(blocks) = blocks else {
            incomplete = true;
            break;
        };
        room -= blocks.len();
        found.push(Loop { head, back_edges, blocks, depth: 1, parent: None });
    }
    found.sort_by_key(|l| (std::cmp::Reverse(l.blocks.len()), l.head));
    let innermost = nest(&mut found, successors.len());
    Loops { loops: found, innermost, irreducible, incomplete }
}

/// The blocks that reach the latches `back_edges` without passing the header, ascending; `None` if
/// there are more than `max`. `inside` holds, for each block, the header of the loop it was last
/// found in.
fn members(
    predecessors: &[Vec<usize>],
    head: usize,
    back_edges: &[usize],
    inside: &mut [usize],
    max: usize,
) -> Option<Vec<usize>> {
    inside[head] = head;
    let mut members = vec![head];
    let mut pending = back_edges.to_vec();
    while let Some(block) = pending.pop() {
        if std::mem::replace(&mut inside[block], head) != head {
            members.push(block);
            pending.extend(predecessors[block].iter().filter(|&&p| inside[p] != head));
        }
        if members.len() > max {
            return None;
        }
    }
    members.sort_unstable();
    Some(members)
}

/// Sets parents and depths of loops sorted by descending size, as natural loops are either nested or
/// disjoint. Returns the innermost loop of each block.
fn nest(loops: &mut [Loop], blocks: usize) -> Vec<Option<usize>> {
    let mut innermost: Vec<Option<usize>> = vec![None; blocks];
    for index in 0..loops.len() {
        let parent = innermost[loops[index].head];
        loops[index].parent = parent;
        loops[index].depth = parent.map_or(1, |p| loops[p].depth + 1);
        for &block in &loops[index].blocks {
            innermost[block] = Some(index);
        }
    }
    innermost
}

/// Steps before giving up: the algorithm is quadratic in the number of blocks in the worst case.
/// Compiled code is far from that, but malicious input need not be.
const MAX_STEPS: usize = 100_000_000;

pub(super) struct Dominators {
    /// Position of each block in reverse postorder; every block has one.
    order: Vec<usize>,
    /// Immediate dominator; `None` for the virtual root.
    immediate: Vec<Option<usize>>,
    /// First and last preorder number of each block's subtree of the dominator tree.
    subtree: Vec<(usize, usize)>,
    /// Blocks in reverse postorder.
    pub sequence: Vec<usize>,
}

impl Dominators {
    /// The dominators of the graph with these successors; `None` after [`MAX_STEPS`].
    pub fn new(successors: &[Vec<usize>]) -> Option<Self> {
        let predecessors = predecessors(successors);
        let (sequence, entries) = reverse_postorder(successors, &predecessors);
        let mut order = vec![0; successors.len()];
        for (position, &block) in sequence.iter().enumerate() {
            order[block] = position;
        }
        let mut result = Self {
            order,
            immediate: vec![None; successors.len()],
            subtree: vec![(0, 0); successors.len()],
            sequence,
        };
        result.solve(&predecessors, &entries)?;
        result.number();
        Some(result)
    }

    /// Numbers the dominator tree; in reverse postorder a block follows its dominator.
    fn number(&mut self) {
        let mut sizes = vec![1; self.sequence.len()];
        for &block in self.sequence.iter().rev() {
            if let Some(above) = self.immediate[block] {
                sizes[above] += sizes[block];
            }
        }
        let mut free = vec![0; self.sequence.len()];
        let mut free_at_root = 0;
        for &block in &self.sequence {
            let next = self.immediate[block].map_or(&mut free_at_root, |above| &mut free[above]);
            let first = *next;
            *next += sizes[block];
            self.subtree[block] = (first, first + sizes[block] - 1);
            free[block] = first + 1;
        }
    }

    fn solve(&mut self, predecessors: &[Vec<usize>], entries: &[bool]) -> Option<()> {
        let mut steps = 0;
        // A block is done once its immediate dominator, maybe the root, is known.
        let mut done = entries.to_vec();
        let mut changed = true;
        while changed {
            changed = false;
            for position in 0..self.sequence.len() {
                let block = self.sequence[position];
                if entries[block] {
                    continue;
                }
                let known = predecessors[block].iter().copied().filter(|&p| done[p]);
                let meet = known.map(Some).reduce(|a, b| self.meet(a, b, &mut steps)).flatten();
                if steps > MAX_STEPS {
                    return None;
                }
                if !done[block] || self.immediate[block] != meet {
                    self.immediate[block] = meet;
                    done[block] = true;
                    changed = true;
                }
            }
        }
        Some(())
    }

    /// The nearest common dominator; `None` is the root.
    fn meet(&self, a: Option<usize>, b: Option<usize>, steps: &mut usize) -> Option<usize> {
        let (mut a, mut b) = (a?, b?);
        while a != b {
            *steps += 1;
            if self.order[a] > self.order[b] {
                a = self.immediate[a]?;
            } else {
                b = self.immediate[b]?;
            }
        }
        Some(a)
    }

    /// Whether every path to `below` goes through `above`.
    pub fn dominates(&self, above: usize, below: usize) -> bool {
        let (first, last) = self.subtree[above];
        (first..=last).contains(&self.subtree[below].0)
    }

    /// Whether an edge goes backward in reverse postorder and so closes a cycle.
    pub fn is_backward(&self, from: usize, to: usize) -> bool {
        self.order[to] <= self.order[from]
    }
}

/// The predecessors of each block.
pub(super) fn predecessors(successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (block, next) in successors.iter().enumerate() {
        for &next in next {
            predecessors[next].push(block);
        }
    }
    predecessors
}

/// All blocks in reverse postorder, and which of them are entries: the first block, those without
/// predecessors, and the first block of each unreachable cycle.
fn reverse_postorder(
    successors: &[Vec<usize>],
    predecessors: &[Vec<usize>],
) -> (Vec<usize>, Vec<bool>) {
    let count = successors.len();
    let mut entries = vec![false; count];
    let mut seen = vec![false; count];
    let mut postorder = Vec::with_capacity(count);
    let without = (0..count).filter(|&b| predecessors[b].is_empty());
    for block in (0..count.min(1)).chain(without).chain(0..count) {
        if seen[block] {
            continue;
        }
        entries[block] = true;
        seen[block] = true;
        let mut stack = vec![(block, 0)];
        while let Some((block, next)) = stack.pop() {
            match successors[block].get(next) {
                Some(&successor) => {
                    stack.push((block, next + 1));
                    if !seen[successor] {
                        seen[successor] = true;
                        stack.push((successor, 0));
                    }
                }
                None => postorder.push(block),
            }
        }
    }
    postorder.reverse();
    (postorder, entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_loops_with_two_latches_and_a_single_block_loop_are_found() {
        // 0 → 1 → 2 → {2, 3}; 3 → {1, 4}; 4 → {1, 5}: an outer loop at 1 with two back edges
        // around the block 2 that loops on itself.
        let graph = [vec![1], vec![2], vec![2, 3], vec![1, 4], vec![1, 5], vec![]];
        let Loops { loops, innermost, irreducible, .. } = loops(&graph);
        let shape: Vec<_> =
            loops.iter().map(|l| (l.head, &*l.back_edges, &*l.blocks, l.depth, l.parent)).collect();
        assert_eq!(
            shape,
            [(1, &[3, 4][..], &[1, 2, 3, 4][..], 1, None), (2, &[2], &[2], 2, Some(0))]
        );
        assert_eq!(innermost, [None, Some(0), Some(1), Some(0), Some(0), None]);
        assert!(irreducible.is_empty());
    }

    #[test]
    fn a_cycle_with_two_entries_is_not_a_loop() {
        let found = loops(&[vec![1, 2], vec![2], vec![1]]);
        assert!(found.loops.is_empty());
        assert_eq!(found.irreducible.len(), 1);
    }

    /// 3000 nested loops, whose sizes would add up to 4.5 million blocks.
    #[test]
    fn excessive_nesting_is_limited() {
        let count = 3000;
        let graph: Vec<_> = (0..2 * count)
            .map(|b| {
                if b < count { vec![b + 1] } else { vec![2 * count - 1 - b, (b + 1) % (2 * count)] }
            })
            .collect();
        let found = loops(&graph);
        let members: usize = found.loops.iter().map(|l| l.blocks.len()).sum();
        assert!(members <= 256 * (2 * count + 16));
        assert!(found.incomplete);
        assert!(found.loops.iter().any(|l| l.blocks.len() == 2), "the innermost loop is found");
    }

    /// Figure 2 of the paper, its irreducible graph: 5 → 4, 3; 4 → 1; 3 → 2; 1 ↔ 2. Numbered here
    /// from the entry: 0 is the paper's 5, 1 its 4, 2 its 3, 3 its 1, 4 its 2.
    #[test]
    fn the_irreducible_graph_of_the_paper_has_its_dominators() {
        let graph = [vec![1, 2], vec![3], vec![4], vec![4], vec![3]];
        let dominators = Dominators::new(&graph).unwrap();
        assert_eq!(dominators.immediate, [None, Some(0), Some(0), Some(0), Some(0)]);
        assert!(dominators.dominates(0, 4) && !dominators.dominates(3, 4));
    }

    #[test]
    fn a_second_entry_removes_dominance() {
        // 0 → 1 → 2 and 3 → 2, where 3 has no predecessor
        let dominators = Dominators::new(&[vec![1], vec![2], vec![], vec![2]]).unwrap();
        assert_eq!(dominators.immediate, [None, Some(0), None, None]);
        assert!(!dominators.dominates(0, 2));
        assert!(!dominators.dominates(3, 1));
    }
}
