//! Natural loops: a back edge goes to a block that dominates its start; the loop is whatever
//! reaches the back edge without passing its head. A cycle with more than one way in is none.

use super::dominators::{Dominators, predecessors};
use super::graph::Loop;

/// All loops may hold so many blocks for each block of the function, a nesting that no compiler
/// writes: their sizes add up to the square of the function's in code made to that end.
const MEMBERS_PER_BLOCK: usize = 256;

/// The loops of a function.
#[derive(Default)]
pub(super) struct Loops {
    /// Outer ones first.
    pub loops: Vec<Loop>,
    /// The innermost loop around each block.
    pub innermost: Vec<Option<usize>>,
    /// Edges (from, to) that close a cycle with several ways in.
    pub irreducible: Vec<(usize, usize)>,
    /// Whether some were given up.
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
    // Inner loops first: those given up for want of room are the outermost.
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

/// Whatever reaches the back edges without passing the head, ascending; `None` if that is more
/// than `most`. `inside` keeps, for each block, the head of the loop it was last found in.
fn members(
    predecessors: &[Vec<usize>],
    head: usize,
    back_edges: &[usize],
    inside: &mut [usize],
    most: usize,
) -> Option<Vec<usize>> {
    inside[head] = head;
    let mut members = vec![head];
    let mut pending = back_edges.to_vec();
    while let Some(block) = pending.pop() {
        if std::mem::replace(&mut inside[block], head) != head {
            members.push(block);
            pending.extend(predecessors[block].iter().filter(|&&p| inside[p] != head));
        }
        if members.len() > most {
            return None;
        }
    }
    members.sort_unstable();
    Some(members)
}

/// Sets parents and depths of loops that are sorted by size, large ones first: natural loops are
/// nested or have no block in common. Returns the innermost loop of each block.
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
    fn nested_loops_with_two_latches_and_a_loop_of_one_block() {
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
    fn a_cycle_with_two_ways_in_is_no_loop() {
        let found = loops(&[vec![1, 2], vec![2], vec![1]]);
        assert!(found.loops.is_empty());
        assert_eq!(found.irreducible.len(), 1);
    }

    /// 3000 heads, each around all later ones: the members would be 4.5 million.
    #[test]
    fn nesting_beyond_reason_is_cut_off() {
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
        assert!(found.loops.iter().any(|l| l.blocks.len() == 2), "the innermost is kept");
    }
}
