//! The tree that the parts make, and which node of it is the bottleneck, if the intervals allow saying so.

use crate::evidence::Interval;
use crate::part::{ALL, CONTENTION, Part};
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
    /// Its share; of Frontend Bound with the errors of its parts added up.
    pub share: Share,
}

impl Parts {
    /// The tree: level 1, the parts of Frontend and Backend Bound below them, what these consist of as far as known,
    /// and what is unexplained.
    pub fn tree(&self) -> Vec<Node> {
        let sum = |of: Dominant| Node {
            id: of.name(),
            label: of.label(),
            depth: 0,
            share: self.share(of),
        };
        let mut tree = Vec::new();
        self.enter(Part::Retiring, 0, &mut tree);
        self.enter(Part::BadSpeculation, 0, &mut tree);
        tree.push(sum(Dominant::Frontend));
        self.enter(Part::FetchLatency, 1, &mut tree);
        self.enter(Part::FetchBandwidth, 1, &mut tree);
        tree.push(sum(Dominant::Backend));
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
        let (front, back) = (self.share(Dominant::Frontend), self.share(Dominant::Backend));
        [&self.retiring, &self.bad_speculation, &front, &back, &self.unexplained].map(|of| of.value)
    }

    /// The part that [`bottleneck`] names, or the largest of it; where that is undecided, of the first of the [`rivals`].
    pub fn leading(&self) -> Part {
        let of = bottleneck(self).or(rivals(self)[0]).map_or(ALL.to_vec(), Dominant::parts);
        let value = |part: &Part| self.of(*part).value;
        let most = of.into_iter().max_by(|a, b| value(a).total_cmp(&value(b)));
        most.unwrap_or(Part::Unexplained)
    }

    /// The share of a node of level 1 or a part.
    pub fn share(&self, of: Dominant) -> Share {
        if let Some(part) = of.part() {
            return self.of(part).clone();
        }
        let sum = match of {
            Dominant::Frontend => self.fetch_latency.plus(&self.fetch_bandwidth),
            _ => self.backend(),
        };
        Share { low: sum.low.max(self.slots(of).low), ..sum }
    }

    /// The slots of a node: as all of them sum to 1, it lacks at most what the others may have more, and has at most what
    /// these may lack. What removes a cause often retires less, too, so that a share may be more than its slots.
    fn slots(&self, of: Dominant) -> Interval {
        let own = of.parts();
        // Core and Memory Bound as one, where they are on the same side.
        let backend = [Part::CoreBound, Part::MemoryBound];
        let sum = |is_own: bool, side: &dyn Fn(Interval) -> f64| -> f64 {
            let is_one = backend.iter().all(|part| own.contains(part) == is_own);
            let all = self.iter().filter(|(part, _)| own.contains(part) == is_own);
            let all = all.filter(|(part, _)| !(is_one && backend.contains(part)));
            let joint = is_one.then(|| self.backend().interval());
            all.map(|(_, share)| share.interval()).chain(joint).map(side).sum()
        };
        let value = sum(true, &|of| of.value);
        let (below, above): (&dyn Fn(Interval) -> f64, &dyn Fn(Interval) -> f64) =
            (&Interval::below, &Interval::above);
        let less = sum(true, below).min(sum(false, above));
        let more = sum(true, above).min(sum(false, below));
        Interval::new(value, value - less, value + more)
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
}

/// What loses most slots, or that most retire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dominant {
    /// A part.
    Part(Part),
    /// Fetch Latency and Fetch Bandwidth together.
    Frontend,
    /// Core and Memory Bound together.
    Backend,
}

impl Dominant {
    /// As in documents.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// As shown.
    pub fn label(self) -> &'static str {
        self.facts().1
    }

    /// The part, if it is one.
    pub fn part(self) -> Option<Part> {
        match self {
            Self::Part(part) => Some(part),
            Self::Frontend | Self::Backend => None,
        }
    }

    /// Its part, if only one of them can have any of the time.
    fn only(self, parts: &Parts) -> Self {
        let own = self.parts().into_iter().filter(|part| parts.of(*part).high > 0.0);
        match own.collect::<Vec<_>>()[..] {
            [one] => Self::Part(one),
            _ => self,
        }
    }

    /// The parts that it consists of.
    pub fn parts(self) -> Vec<Part> {
        match self {
            Self::Part(part) => vec![part],
            Self::Frontend => vec![Part::FetchLatency, Part::FetchBandwidth],
            Self::Backend => vec![Part::CoreBound, Part::MemoryBound],
        }
    }

    /// What has this name.
    pub fn of(name: &str) -> Option<Self> {
        let both = [Self::Frontend, Self::Backend];
        let sum = both.into_iter().find(|sum| sum.name() == name);
        sum.or_else(|| Part::of(name).map(Self::Part))
    }

    fn facts(self) -> (&'static str, &'static str) {
        match self {
            Self::Part(part) => (part.name(), part.label()),
            Self::Frontend => ("frontend_bound", "Frontend Bound"),
            Self::Backend => ("backend_bound", "Backend Bound"),
        }
    }
}

/// The nodes of level 1, and what is unexplained; of the losses with the share above which Intel's tree flags them, as of
/// Retiring.
const LEVEL1: [(Dominant, f64); 5] = [
    (Dominant::Part(Part::Retiring), 0.7),
    (Dominant::Part(Part::BadSpeculation), 0.15),
    (Dominant::Frontend, 0.15),
    (Dominant::Backend, 0.2),
    (UNEXPLAINED, f64::INFINITY),
];
const UNEXPLAINED: Dominant = Dominant::Part(Part::Unexplained);

/// The nodes of level 1 that compete, those first that may be named: the losses, if one is flagged, and fewer retire than
/// Intel's tree flags; else all.
fn level1(parts: &Parts) -> (Vec<Dominant>, Vec<Dominant>) {
    let is_flagged = |(of, least): &&(Dominant, f64)| parts.share(*of).value > *least;
    let (retiring, losses) = LEVEL1.split_at(1);
    let flagged: Vec<_> = losses.iter().filter(is_flagged).collect();
    let (named, all) = match is_flagged(&&retiring[0]) || flagged.is_empty() {
        true => (LEVEL1.iter().collect(), &LEVEL1[..]),
        false => (flagged, losses),
    };
    let nodes = all.iter().map(|(of, _)| *of).collect();
    (named.into_iter().map(|(of, _)| *of).collect(), nodes)
}

/// As in a counted tree, from level 1 down: the largest flagged node of it that loses slots, or Retiring if that is
/// flagged or nothing else is, and the part of that which is larger than the other. Flags are of values, as there.
/// `None` (*undecided*) where another node, or what is unexplained, may be as large: where the difference of the two
/// shares is not above their errors, combined in quadrature. What the node lacks is unexplained: that counts twice.
pub fn bottleneck(parts: &Parts) -> Option<Dominant> {
    let (named, all) = level1(parts);
    let found = largest(parts, &named, &all)?;
    let own = found.parts().into_iter().map(Dominant::Part).collect::<Vec<_>>();
    largest(parts, &own, &own).or(Some(found))
}

/// Where the bottleneck is undecided: the node of level 1 with the largest share, and the one of the others that reaches
/// furthest.
pub fn rivals(parts: &Parts) -> [Option<Dominant>; 2] {
    let largest = |of: &[Dominant], but: Option<Dominant>, side: fn(Share) -> f64| {
        let known =
            of.iter().filter(|of| Some(**of) != but).map(|of| (side(parts.share(*of)), *of));
        known.filter(|(share, _)| *share > 0.0).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, of)| of)
    };
    let (nodes, all) = (level1(parts).1, LEVEL1.map(|(of, _)| of));
    let first = largest(&nodes, None, |share| share.value);
    let high: fn(Share) -> f64 = |share| share.high;
    let second = largest(&nodes, first, high).or_else(|| largest(&all, first, high));
    [first, second].map(|of| of.map(|of| of.only(parts)))
}

/// The largest of nodes that may be named, but for what is unexplained, if it is certain to be larger than all others.
fn largest(parts: &Parts, named: &[Dominant], all: &[Dominant]) -> Option<Dominant> {
    let named = named.iter().filter(|of| **of != UNEXPLAINED).map(|of| (parts.slots(*of), *of));
    let (own, most) = named.max_by(|a, b| a.0.value.total_cmp(&b.0.value))?;
    let others = LEVEL1.iter().filter(|(of, _)| *of != most && *of != UNEXPLAINED);
    let others = others.map(|(of, _)| parts.slots(*of).below()).fold(0.0, f64::hypot);
    let is_less = |other: &Dominant| {
        let of = parts.slots(*other);
        let both = match most.part() {
            None if *other == UNEXPLAINED => {
                (own.below() + of.above()).min(others.hypot(2.0 * own.below()))
            }
            _ => own.below().hypot(of.above()),
        };
        *other == most || own.value - of.value > both
    };
    (own.value > 0.0 && all.iter().all(is_less)).then_some(most)
}
