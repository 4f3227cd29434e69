//! The tree that the parts make, and which part is the largest, if the intervals allow saying so.

use crate::parts::{Part, Parts, Share};

/// A node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The name of its part; of Frontend and Backend Bound their own.
    pub id: &'static str,
    /// As shown.
    pub label: &'static str,
    /// 0, or 1 for a part of Frontend or Backend Bound.
    pub depth: usize,
    /// Its share; of a sum, with the errors of its parts added up.
    pub share: Share,
}

impl Parts {
    /// The tree: level 1, the parts of Frontend and Backend Bound below them, and what is unexplained.
    pub fn tree(&self) -> Vec<Node> {
        let sum = |id, label, share| Node { id, label, depth: 0, share };
        let node = |part: Part, depth| Node {
            id: part.name(),
            label: part.label(),
            depth,
            share: self.of(part).clone(),
        };
        vec![
            node(Part::Retiring, 0),
            node(Part::BadSpeculation, 0),
            sum("frontend_bound", "Frontend Bound", self.frontend()),
            node(Part::FetchLatency, 1),
            node(Part::FetchBandwidth, 1),
            sum("backend_bound", "Backend Bound", self.backend()),
            node(Part::CoreBound, 1),
            node(Part::MemoryBound, 1),
            node(Part::Unexplained, 0),
        ]
    }

    /// Level 1 and what is unexplained, in order: Retiring, Bad Speculation, Frontend, Backend, Unexplained.
    pub fn level1(&self) -> [f64; 5] {
        let shares = [
            &self.retiring,
            &self.bad_speculation,
            &self.frontend(),
            &self.backend(),
            &self.unexplained,
        ];
        shares.map(|share| share.value)
    }

    fn frontend(&self) -> Share {
        self.fetch_latency.plus(&self.fetch_bandwidth)
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
    let is_less = |(part, other): (Part, &crate::Share)| {
        let apart = own.value - other.value;
        part == most || apart > own.interval().below().hypot(other.interval().above())
    };
    (own.value > 0.0 && parts.iter().all(is_less)).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, Reason, Share, Source};

    /// A share that may be anything up to a bound is not shown as 0.
    #[test]
    fn what_is_bounded_has_no_value() {
        let of = |value, source| Share { value, source, ..Share::default() };
        let (none, unknown) = (of(0.0, Source::Excluded), of(0.0, Source::Bounded));
        assert!(!unknown.has_value());
        assert!(of(0.1, Source::Bounded).has_value());
        assert!(of(0.0, Source::Residual).has_value());
        // Nor is the sum of nothing and of that.
        assert!(!none.plus(&unknown).has_value() && !unknown.plus(&none).has_value());
        assert!(none.plus(&none).has_value());
    }

    /// By hand: 0.5 (0.4 to 0.6) and 0.2 (0.1 to 0.5) are 0.7 (0.5 to 1, the whole).
    #[test]
    fn backend_bound_is_the_sum_of_its_parts_with_both_errors() {
        let of = |value, low, high, source| Share { value, low, high, source, reason: None };
        let parts = Parts {
            core_bound: of(0.5, 0.4, 0.6, Source::Isolated),
            memory_bound: of(0.2, 0.1, 0.5, Source::Inferred),
            ..Parts::default()
        };
        let tree = parts.tree();
        let backend = tree.iter().find(|node| node.id == "backend_bound").unwrap();
        let Share { value, low, high, source, .. } = backend.share;
        assert!((value - 0.7).abs() < 1e-12 && (low - 0.5).abs() < 1e-12, "{backend:?}");
        assert_eq!((high, source), (1.0, Source::Sum));
        assert!((parts.level1()[3] - 0.7).abs() < 1e-12);
    }

    fn parts(all: &[(Part, f64, f64)]) -> Parts {
        let mut parts = Parts::default();
        for (part, value, half) in all {
            let share = Interval::new(*value, value - half, value + half);
            parts.set(*part, Share::known(share, Source::Counted));
        }
        parts
    }

    /// By hand: 0.6 − 0.4 = 0.2 against √(0.12² + 0.12²) = 0.17 and √(0.15² + 0.15²) = 0.21.
    #[test]
    fn parts_within_their_errors_are_undecided() {
        use crate::parts::Part::{CoreBound, MemoryBound, Unexplained};
        let of = |half| bottleneck(&parts(&[(CoreBound, 0.6, half), (MemoryBound, 0.4, half)]));
        assert_eq!((of(0.12), of(0.15)), (Some(CoreBound), None));
        assert_eq!(bottleneck(&parts(&[(CoreBound, 0.4, 0.0), (Unexplained, 0.6, 0.0)])), None);
        assert_eq!(bottleneck(&Parts::unknown(Reason::NoTime)), None);
    }
}
