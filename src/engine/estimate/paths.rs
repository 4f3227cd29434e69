//! The paths through a loop, by how often their edges were taken.

use isa::flow::{Edge, Flow, Loop};

/// Most paths of a loop.
const MOST: usize = 3;
/// Less frequent paths are not followed.
const LEAST: f64 = 0.05;

/// Most steps from block to block in all: each of the paths above is of a twentieth of the iterations at least.
const STEPS: usize = 10_000;

/// A path from the loop's head back to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    /// Its blocks, in order.
    pub blocks: Vec<usize>,
    /// Share of the iterations that take it, if branches do not depend on one another.
    pub share: f64,
}

/// The most frequent paths, most frequent first. `share` is that of a block's executions that go on to another.
pub(super) fn paths(flow: &Flow, of: &Loop, share: &dyn Fn(usize, usize) -> f64) -> Vec<Path> {
    let mut found: Vec<Path> = Vec::new();
    let mut open = vec![Path { blocks: vec![of.head], share: 1.0 }];
    // Shares of a saved graph may be anything.
    for _ in 0..STEPS {
        let Some(path) = take_most(&mut open) else { break };
        if found.len() >= MOST || path.share < LEAST {
            break;
        }
        let last = *path.blocks.last().unwrap_or(&of.head);
        for edge in &flow.blocks[last].edges {
            let Edge::Block(to) = edge else { continue };
            let share = path.share * share(last, *to);
            if *to == of.head {
                found.push(Path { share, ..path.clone() });
            } else if of.blocks.contains(to) && !path.blocks.contains(to) {
                let blocks = path.blocks.iter().copied().chain([*to]).collect();
                open.push(Path { blocks, share });
            }
        }
    }
    found.retain(|path| path.share >= LEAST);
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found.truncate(MOST);
    found
}

fn take_most(open: &mut Vec<Path>) -> Option<Path> {
    let most = (0..open.len()).max_by(|a, b| open[*a].share.total_cmp(&open[*b].share))?;
    Some(open.swap_remove(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::flow::BasicBlock;

    /// 0 → 1 (70 %) or 2; both → 3; 3 → 0. By hand.
    #[test]
    fn both_sides_of_a_branch_are_paths() {
        let block = |to: &[usize]| BasicBlock {
            edges: to.iter().map(|to| Edge::Block(*to)).collect(),
            ..BasicBlock::default()
        };
        let blocks = vec![block(&[1, 2]), block(&[3]), block(&[3]), block(&[0])];
        let flow = Flow { blocks, ..Flow::default() };
        let of = Loop { head: 0, blocks: vec![0, 1, 2, 3], ..Loop::default() };
        let share = |from: usize, to: usize| match (from, to) {
            (0, 1) => 0.7,
            (0, 2) => 0.3,
            _ => 1.0,
        };
        let found = paths(&flow, &of, &share);
        let blocks: Vec<&[usize]> = found.iter().map(|path| &path.blocks[..]).collect();
        assert_eq!(blocks, [&[0, 1, 3][..], &[0, 2, 3]]);
        assert_eq!((found[0].share, found[1].share), (0.7, 0.3));
    }
}
