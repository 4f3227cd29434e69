//! Natural loops: a back edge goes from a latch to a header that dominates it, and the loop consists
//! of the blocks that reach the latch without passing the header. Cycles with several entries are
//! irreducible and not loops.

use super::dominators::{Dominators, predecessors};
use super::graph::Loop;

/// Limit on the summed sizes of all loops, per block of the function. It corresponds to a nesting
/// depth that compilers do not produce; in malicious input the sum can be quadratic.
const MEMBERS_PER_BLOCK: usize = 256;

/// The loops of a function.
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
}
