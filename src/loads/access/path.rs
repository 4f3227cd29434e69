//! Paths through one iteration of a loop.

use isa::flow::{Edge, Flow, Loop};
use std::collections::BTreeSet;

/// Most paths that are looked at.
const MOST_PATHS: usize = 64;
/// Most steps of the search.
const MOST_STEPS: usize = 20_000;

/// Paths from the head of the loop through `block` back to the head, each block at most once: loops
/// within it run once.
pub fn paths(flow: &Flow, within: &Loop, block: usize) -> Vec<Vec<usize>> {
    let mut search = Search {
        flow,
        within,
        block,
        leads: leading_to(flow, within, block),
        path: Vec::new(),
        found: Vec::new(),
        steps: 0,
    };
    search.visit(within.head);
    search.found
}

/// The blocks that a block may be followed by, without leaving the loop.
fn successors<'a>(flow: &'a Flow, within: &'a Loop, of: usize) -> impl Iterator<Item = usize> + 'a {
    let edges = flow.blocks.get(of).map(|block| &block.edges[..]).unwrap_or_default();
    edges.iter().filter_map(|edge| match edge {
        Edge::Block(to) if within.blocks.binary_search(to).is_ok() => Some(*to),
        _ => None,
    })
}

/// The blocks from which `block` can be reached within the iteration.
fn leading_to(flow: &Flow, within: &Loop, block: usize) -> BTreeSet<usize> {
    let mut leads = BTreeSet::from([block]);
    loop {
        let before = leads.len();
        for one in &within.blocks {
            if successors(flow, within, *one).any(|to| to != within.head && leads.contains(&to)) {
                leads.insert(*one);
            }
        }
        if leads.len() == before {
            return leads;
        }
    }
}

struct Search<'a> {
    flow: &'a Flow,
    within: &'a Loop,
    block: usize,
    leads: BTreeSet<usize>,
    path: Vec<usize>,
    found: Vec<Vec<usize>>,
    steps: usize,
}

impl Search<'_> {
    fn visit(&mut self, from: usize) {
        self.steps += 1;
        if self.steps > MOST_STEPS || self.found.len() >= MOST_PATHS {
            return;
        }
        self.path.push(from);
        let is_after = self.path.contains(&self.block);
        for to in successors(self.flow, self.within, from) {
            if to == self.within.head {
                if is_after && self.found.len() < MOST_PATHS {
                    self.found.push(self.path.clone());
                }
            } else if !self.path.contains(&to) && (is_after || self.leads.contains(&to)) {
                self.visit(to);
            }
        }
        self.path.pop();
    }
}
