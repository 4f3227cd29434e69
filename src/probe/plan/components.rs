//! Flow of a function without its edges: block ends joined by edges form a component, and each
//! block leads from one component to another. As much flow enters a component as leaves it; the
//! counts of blocks have no other relation (Knuth and Stevenson, BIT 13, 1973).

use crate::facts::{Exit, Function};

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
