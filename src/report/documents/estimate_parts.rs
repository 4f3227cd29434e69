//! The parts of the time of an estimate, and the tree that they make.

use estimate::{Part, Source};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The largest part of a time; none where it is not decided which that is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Bottleneck(pub Option<Part>);

impl Bottleneck {
    /// As in documents: that of the part, or `undecided`.
    pub fn name(self) -> &'static str {
        self.0.map_or("undecided", Part::name)
    }

    /// In words: `memory bound`.
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }
}

impl From<Bottleneck> for String {
    fn from(of: Bottleneck) -> Self {
        of.name().to_owned()
    }
}

impl TryFrom<String> for Bottleneck {
    type Error = NoPart;

    fn try_from(name: String) -> Result<Self, NoPart> {
        match Part::of(&name) {
            None if !["undecided", ""].contains(&name.as_str()) => Err(NoPart(name)),
            found => Ok(Self(found)),
        }
    }
}

/// A name that no part of the time has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPart(String);

impl fmt::Display for NoPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no part of the time is called `{}`", self.0)
    }
}

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
    /// Time that none of them covers.
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
    /// Where it comes from.
    pub source: ShareSource,
    /// Other possible parts, or why it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where a share comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareSource {
    /// Exact counts and the µop table, over sampled time.
    Counted,
    /// A model: mispredictions × their cost, latencies of dependent instructions.
    Modelled,
    /// Loops and blocks in isolation.
    #[serde(rename = "measured in isolation")]
    Isolated,
    /// Rest, as far as loads or code can account for it. Older documents have `residual` for it.
    Inferred,
    /// Unexplained rest.
    Residual,
    /// Nothing is there that could take time.
    #[default]
    #[serde(alias = "")]
    Excluded,
    /// Not known, at most the upper end. Older documents have `no evidence` for it.
    #[serde(alias = "no evidence")]
    Bounded,
    /// Sum, for Frontend and Backend Bound.
    #[serde(rename = "sum of its parts")]
    Sum,
    /// Several sources, of a line whose blocks differ.
    #[serde(rename = "of several blocks")]
    Several,
}

impl From<Option<Source>> for ShareSource {
    fn from(of: Option<Source>) -> Self {
        match of {
            Some(Source::Counted) => Self::Counted,
            Some(Source::Modelled) => Self::Modelled,
            Some(Source::Isolated) => Self::Isolated,
            Some(Source::Inferred) => Self::Inferred,
            Some(Source::Residual) => Self::Residual,
            Some(Source::Excluded) => Self::Excluded,
            None => Self::Bounded,
        }
    }
}

/// Word in documents.
impl fmt::Display for ShareSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
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
    /// Shown name.
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
        self.value > 0.0 || self.source != ShareSource::Bounded
    }

    /// The sum of two parts; their errors add up.
    fn plus(&self, other: &Self) -> Self {
        let unknown = [self, other].into_iter().find(|part| !part.has_value());
        let source = match unknown {
            _ if self.source == other.source => self.source,
            Some(part) if self.value + other.value <= 0.0 => part.source,
            _ => ShareSource::Sum,
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
    use serde_json::{from_value, to_value};

    /// A value known only to be below a bound is not shown as 0.
    #[test]
    fn what_is_bounded_has_no_value() {
        let of = |value, source| Share { value, source, ..Share::default() };
        let (none, unknown) = (of(0.0, ShareSource::Excluded), of(0.0, ShareSource::Bounded));
        assert!(!unknown.has_value());
        assert!(of(0.1, ShareSource::Bounded).has_value());
        assert!(of(0.0, ShareSource::Residual).has_value());
        // Nor is the sum of nothing and of that.
        assert!(!none.plus(&unknown).has_value() && !unknown.plus(&none).has_value());
        assert!(none.plus(&none).has_value());
    }

    /// By hand: 0.5 (0.4 to 0.6) and 0.2 (0.1 to 0.5) are 0.7 (0.5 to 1, the whole).
    #[test]
    fn backend_bound_is_the_sum_of_its_parts_with_both_errors() {
        let of = |value, low, high, source| Share { value, low, high, source, reason: None };
        let parts = Parts {
            core_bound: of(0.5, 0.4, 0.6, ShareSource::Isolated),
            memory_bound: of(0.2, 0.1, 0.5, ShareSource::Inferred),
            ..Parts::default()
        };
        let tree = parts.tree();
        let backend = tree.iter().find(|node| node.id == "backend_bound").unwrap();
        let Share { value, low, high, source, .. } = backend.share;
        assert!((value - 0.7).abs() < 1e-12 && (low - 0.5).abs() < 1e-12, "{backend:?}");
        assert_eq!((high, source), (1.0, ShareSource::Sum));
        assert!((parts.level1()[3] - 0.7).abs() < 1e-12);
    }

    /// Documents have these names, and older ones others.
    #[test]
    fn names_of_sources_and_bottlenecks_are_fixed() {
        let all = [
            (Some(Source::Counted), "counted"),
            (Some(Source::Modelled), "modelled"),
            (Some(Source::Isolated), "measured in isolation"),
            (Some(Source::Inferred), "inferred"),
            (Some(Source::Residual), "residual"),
            (Some(Source::Excluded), "excluded"),
            (None, "bounded"),
        ];
        let all = all.map(|(source, name)| (ShareSource::from(source), name));
        let made =
            [(ShareSource::Sum, "sum of its parts"), (ShareSource::Several, "of several blocks")];
        for (source, name) in all.into_iter().chain(made) {
            assert_eq!(to_value(source).unwrap(), name);
            assert_eq!(source.to_string(), name);
            assert_eq!(from_value::<ShareSource>(name.into()).unwrap(), source);
        }
        assert_eq!(from_value::<ShareSource>("no evidence".into()).unwrap(), ShareSource::Bounded);
        for (part, name) in [(None, "undecided"), (Some(Part::MemoryBound), "memory_bound")] {
            assert_eq!(to_value(Bottleneck(part)).unwrap(), name);
            assert_eq!(from_value::<Bottleneck>(name.into()).unwrap(), Bottleneck(part));
        }
        assert_eq!(Bottleneck(Some(Part::MemoryBound)).words(), "memory bound");
        assert!(from_value::<Bottleneck>("dram".into()).is_err());
    }
}
