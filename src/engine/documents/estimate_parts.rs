//! The parts of the time of an estimate, and the tree that they make.

use estimate::parts::UNKNOWN;
use serde::{Deserialize, Serialize};

/// Into what the time divides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Slots of retired µops.
    pub retiring: Share,
    /// Mispredicted branches.
    pub bad_speculation: Share,
    /// Fetching and decoding code that is at hand.
    pub fetch_bandwidth: Share,
    /// Fetching code from beyond the first cache.
    pub fetch_latency: Share,
    /// Ports, dependencies, store forwarding, dividers.
    pub core_bound: Share,
    /// Loads and stores beyond the first cache.
    pub memory_bound: Share,
    /// What none of them covers.
    pub unexplained: Share,
}

/// A part's share of the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The share.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// `counted`, `modelled`, `measured in isolation`, `residual`, `excluded` (nothing is there that could take time), or
    /// `bounded`: not known, at most `high`. Older documents have `no evidence` for it.
    pub source: String,
    /// What it may be instead, or why it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Parts {
    /// The name of the part with this label, as `bottleneck` has it.
    pub fn id(&self, label: &str) -> &'static str {
        self.tree().into_iter().find(|node| node.label == label).map_or("", |node| node.id)
    }

    /// The parts with their labels, in order.
    pub fn all(&self) -> [(&'static str, &Share); 7] {
        [
            ("Retiring", &self.retiring),
            ("Bad Speculation", &self.bad_speculation),
            ("Fetch Bandwidth", &self.fetch_bandwidth),
            ("Fetch Latency", &self.fetch_latency),
            ("Core Bound", &self.core_bound),
            ("Memory Bound", &self.memory_bound),
            ("Unexplained", &self.unexplained),
        ]
    }
}

/// A node of the tree that the parts make.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The name of its part in `bottleneck`; of Frontend and Backend Bound their own.
    pub id: &'static str,
    /// What we show.
    pub label: &'static str,
    /// 0, or 1 for a part of Frontend or Backend Bound.
    pub depth: usize,
    /// Its share; of a sum, with the errors of its parts added up.
    pub share: Share,
}

impl Parts {
    /// The tree: level 1, the parts of Frontend and Backend Bound below them, and what is unexplained.
    pub fn tree(&self) -> Vec<Node> {
        let node =
            |id, label, depth, share: &Share| Node { id, label, depth, share: share.clone() };
        vec![
            node("retiring", "Retiring", 0, &self.retiring),
            node("bad_speculation", "Bad Speculation", 0, &self.bad_speculation),
            node("frontend_bound", "Frontend Bound", 0, &self.frontend()),
            node("fetch_latency", "Fetch Latency", 1, &self.fetch_latency),
            node("fetch_bandwidth", "Fetch Bandwidth", 1, &self.fetch_bandwidth),
            node("backend_bound", "Backend Bound", 0, &self.backend()),
            node("core_bound", "Core Bound", 1, &self.core_bound),
            node("memory_bound", "Memory Bound", 1, &self.memory_bound),
            node("unexplained", "Unexplained", 0, &self.unexplained),
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

impl Share {
    /// Whether there is a value; else only the interval and the reason are known.
    pub fn has_value(&self) -> bool {
        self.value > 0.0 || ![UNKNOWN, "no evidence"].contains(&self.source.as_str())
    }

    /// The sum of two parts; their errors add up.
    fn plus(&self, other: &Self) -> Self {
        let unknown = [self, other].into_iter().find(|part| !part.has_value());
        let source = match unknown {
            _ if self.source == other.source => self.source.clone(),
            Some(part) if self.value + other.value <= 0.0 => part.source.clone(),
            _ => "sum of its parts".to_owned(),
        };
        Self {
            value: self.value + other.value,
            low: self.low + other.low,
            high: (self.high + other.high).min(1.0),
            source,
            reason: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may be anything up to a bound is not shown as 0.
    #[test]
    fn what_is_bounded_has_no_value() {
        let of =
            |value, source: &str| Share { value, source: source.to_owned(), ..Share::default() };
        assert!(!of(0.0, "bounded").has_value());
        assert!(of(0.1, "bounded").has_value() && of(0.0, "residual").has_value());
        // Nor is the sum of nothing and of that.
        let (none, unknown) = (of(0.0, "excluded"), of(0.0, "bounded"));
        assert!(!none.plus(&unknown).has_value() && !unknown.plus(&none).has_value());
        assert!(none.plus(&none).has_value());
    }

    /// By hand: 0.5 (0.4 to 0.6) and 0.2 (0.1 to 0.5) are 0.7 (0.5 to 1, the whole).
    #[test]
    fn backend_bound_is_the_sum_of_its_parts_with_both_errors() {
        let of = |value, low, high, source: &str| Share {
            value,
            low,
            high,
            source: source.to_owned(),
            reason: None,
        };
        let parts = Parts {
            core_bound: of(0.5, 0.4, 0.6, "measured in isolation"),
            memory_bound: of(0.2, 0.1, 0.5, "residual"),
            ..Parts::default()
        };
        let tree = parts.tree();
        let backend = tree.iter().find(|node| node.id == "backend_bound").unwrap();
        let Share { value, low, high, ref source, .. } = backend.share;
        assert!((value - 0.7).abs() < 1e-12 && (low - 0.5).abs() < 1e-12, "{backend:?}");
        assert_eq!((high, source.as_str()), (1.0, "sum of its parts"));
        assert!((parts.level1()[3] - 0.7).abs() < 1e-12);
    }
}
