//! A function's flow without its inner edges: what is joined by edges is one component, and each block
//! leads from one component to another. What enters a component leaves it, which is all that the counts
//! of the blocks say about one another (Knuth and Stevenson, BIT 13, 1973).

use crate::facts::{Exit, Function};

/// An edge: from and to which block; none is outside.
pub(super) type Edge = (Option<usize>, Option<usize>);

/// The components at both ends of every block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Components {
    /// By block: from which it is entered.
    pub into: Vec<usize>,
    /// By block: to which it leads.
    pub out: Vec<usize>,
    /// The one outside of the function. It has no sum: calls that do not return, and other functions.
    pub outside: usize,
    /// Numbers are below this.
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
    // Ends: where blocks begin, where they end, and what is outside.
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
    /// As many sets as numbers.
    pub fn new(number: usize) -> Self {
        Self((0..number).collect())
    }

    /// The number that stands for its set.
    pub fn find(&mut self, mut of: usize) -> usize {
        while self.0[of] != of {
            self.0[of] = self.0[self.0[of]];
            of = self.0[of];
        }
        of
    }

    /// Makes one set of two; whether they were two.
    pub fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.find(one), self.find(other));
        self.0[other] = one;
        one != other
    }
}
