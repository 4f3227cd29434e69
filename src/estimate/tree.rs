//! The tree that the parts make, and which of those that make up the time is the largest, if the intervals allow saying
//! so.

use crate::part::{CONTENTION, Part};
use crate::parts::Parts;
use crate::share::Share;

/// A node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The name of its part; of Frontend and Backend Bound their own.
    pub id: &'static str,
    /// As shown.
    pub label: &'static str,
    /// 0 at level 1; 1 for a part of such a one, 2 for a part of a part of Frontend or Backend Bound.
    pub depth: usize,
    /// Its share; of a sum, with the errors of its parts added up.
    pub share: Share,
}

impl Parts {
    /// The tree: level 1, the parts of Frontend and Backend Bound below them, what these consist of as far as known,
    /// and what is unexplained.
    pub fn tree(&self) -> Vec<Node> {
        let sum = |id, label, share| Node { id, label, depth: 0, share };
        let mut tree = Vec::new();
        self.enter(Part::Retiring, 0, &mut tree);
        self.enter(Part::BadSpeculation, 0, &mut tree);
        tree.push(sum("frontend_bound", "Frontend Bound", self.frontend()));
        self.enter(Part::FetchLatency, 1, &mut tree);
        self.enter(Part::FetchBandwidth, 1, &mut tree);
        tree.push(sum("backend_bound", "Backend Bound", self.backend()));
        self.enter(Part::CoreBound, 1, &mut tree);
        self.enter(Part::MemoryBound, 1, &mut tree);
        self.enter(Part::Unexplained, 0, &mut tree);
        tree
    }

    /// Adds a part and what it consists of.
    fn enter(&self, part: Part, depth: usize, tree: &mut Vec<Node>) {
        let (id, label, share) = (part.name(), part.label(), self.of(part).clone());
        tree.push(Node { id, label, depth, share });
        self.below(part).for_each(|(child, _)| self.enter(child, depth + 1, tree));
    }

    /// Level 1 and what is unexplained, in order: Retiring, Bad Speculation, Frontend, Backend, Unexplained.
    pub fn level1(&self) -> [f64; 5] {
        let (front, back) = (self.frontend(), self.backend());
        [&self.retiring, &self.bad_speculation, &front, &back, &self.unexplained].map(|of| of.value)
    }

    /// The part that [`bottleneck`] names; where that is undecided, the one with the largest share.
    pub fn leading(&self) -> Part {
        let most = || self.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value));
        bottleneck(self).or_else(|| most().map(|(part, _)| part)).unwrap_or(Part::Unexplained)
    }

    fn frontend(&self) -> Share {
        self.fetch_latency.plus(&self.fetch_bandwidth)
    }

    /// Whether most of Memory Bound is L1 Bound.
    pub fn is_mostly_l1(&self) -> bool {
        let known = self.get(Part::L1Bound).map_or(0.0, |share| share.value);
        known > 0.5 * self.memory_bound.value
    }

    /// The kind of contention that has most of Memory Bound, if one does.
    pub fn mostly_contended(&self) -> Option<Part> {
        let share = |part: Part| self.get(part).map_or(0.0, |share| share.value);
        CONTENTION.into_iter().find(|part| share(*part) > 0.5 * self.memory_bound.value)
    }

    fn backend(&self) -> Share {
        self.core_bound.plus(&self.memory_bound)
    }
}

/// The part with the largest share. `None` (*undecided*) where another one, or what is unexplained, may be as
/// large: where the difference of the two shares is not above their errors, combined in quadrature.
pub fn bottleneck(parts: &Parts) -> Option<Part> {
    let named = parts.iter().filter(|(part, _)| *part != Part::Unexplained);
    let (most, own) = named.max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let is_less = |(part, other): (Part, &Share)| {
        let apart = own.value - other.value;
        part == most || apart > own.interval().below().hypot(other.interval().above())
    };
    (own.value > 0.0 && parts.iter().all(is_less)).then_some(most)
}
