//! The parts of a piece of code's time, their sources, and sums of them; the tree that they make, and which part is
//! the largest, if the intervals allow saying so.

use crate::evidence::{Interval, Reason};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A part of the time, in slots of the core's width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Slots of retired µops.
    Retiring,
    /// Mispredicted branches.
    BadSpeculation,
    /// Fetching and decoding, with all code in the first cache.
    FetchBandwidth,
    /// Fetching code from beyond the first cache.
    FetchLatency,
    /// Ports, dependencies, store forwarding and dividers.
    CoreBound,
    /// Loads and stores: what the first cache takes, as far as nothing hides it, and beyond it.
    MemoryBound,
    /// The share of Memory Bound that loads wait for the first cache or for earlier stores, as known in isolation; in it,
    /// not beside it.
    L1Bound,
    /// Time that none of them covers.
    Unexplained,
}

/// All parts that make up the time, in the order of documents.
pub const ALL: [Part; 7] = [
    Part::Retiring,
    Part::BadSpeculation,
    Part::FetchBandwidth,
    Part::FetchLatency,
    Part::CoreBound,
    Part::MemoryBound,
    Part::Unexplained,
];

impl Part {
    /// As in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retiring => "retiring",
            Self::BadSpeculation => "bad_speculation",
            Self::FetchBandwidth => "fetch_bandwidth",
            Self::FetchLatency => "fetch_latency",
            Self::CoreBound => "core_bound",
            Self::MemoryBound => "memory_bound",
            Self::L1Bound => "l1_bound",
            Self::Unexplained => "unexplained",
        }
    }

    /// As shown.
    pub fn label(self) -> &'static str {
        match self {
            Self::Retiring => "Retiring",
            Self::BadSpeculation => "Bad Speculation",
            Self::FetchBandwidth => "Fetch Bandwidth",
            Self::FetchLatency => "Fetch Latency",
            Self::CoreBound => "Core Bound",
            Self::MemoryBound => "Memory Bound",
            Self::L1Bound => "L1 Bound",
            Self::Unexplained => "Unexplained",
        }
    }

    /// The part with this name.
    pub fn of(name: &str) -> Option<Self> {
        ALL.into_iter().find(|part| part.name() == name)
    }
}

/// Where a share comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Exact counts and the µop table, over sampled time.
    Counted,
    /// A model: mispredictions × their cost on this host, latencies of dependent instructions.
    Modelled,
    /// Loops and blocks in isolation.
    #[serde(rename = "measured in isolation")]
    Isolated,
    /// The remainder, where loads are known to miss often enough for it, or code not to fit. Older documents have
    /// `residual` for it.
    Inferred,
    /// The remainder that is unexplained.
    Residual,
    /// Nothing is there that could take time: no loads that miss, code that fits, another bound in isolation.
    #[default]
    #[serde(alias = "")]
    Excluded,
    /// Not known, at most the upper end. Older documents have `no evidence` for it.
    #[serde(alias = "no evidence")]
    Bounded,
    /// The sum that is Frontend or Backend Bound, of parts with different sources.
    #[serde(rename = "sum of its parts")]
    Sum,
    /// The mean of a source line's blocks, which have different sources.
    #[serde(rename = "of several blocks")]
    Several,
}

/// As in documents.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A part's share of the time, 0 to 1; or the most that it can be, where it is not known. The latter is above 0: a share
/// that can only be 0 is known. By default none of the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The share; 0 where it is not known.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Where it comes from.
    pub source: Source,
    /// Why it is not known, or what it may be instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Share {
    /// A share that is known.
    pub fn known(share: Interval, source: Source) -> Self {
        Self { source, ..Self::default() }.with(share)
    }

    /// Anything up to `most`.
    pub fn unknown(most: f64, reason: Reason) -> Self {
        match most > 0.0 {
            true => Self {
                high: most,
                source: Source::Bounded,
                reason: Some(reason),
                ..Self::default()
            },
            false => Self::default(),
        }
    }

    /// With another reason.
    #[must_use]
    pub fn because(self, reason: Option<Reason>) -> Self {
        Self { reason, ..self }
    }

    /// The share with its ends.
    pub fn interval(&self) -> Interval {
        Interval { value: self.value, low: self.low, high: self.high }
    }

    /// Whether it is known to be none of the time.
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether there is a value; else only the interval and the reason are known.
    pub fn has_value(&self) -> bool {
        self.value > 0.0 || self.source != Source::Bounded
    }

    fn with(self, share: Interval) -> Self {
        let Interval { value, low, high } = share;
        Self { value, low, high, ..self }
    }

    /// With another interval; an unknown share that can then only be 0 is known to be none.
    fn within(&self, share: Interval) -> Self {
        match self.source {
            Source::Bounded if share.high <= 0.0 => Self::default(),
            _ => self.clone().with(share),
        }
    }

    /// The sum of two parts; their errors add up.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let unknown = [self, other].into_iter().find(|part| !part.has_value());
        let source = match unknown {
            _ if self.source == other.source => self.source,
            Some(part) if self.value + other.value <= 0.0 => part.source,
            _ => Source::Sum,
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

/// The shares of all parts; their values, without `l1_bound`, sum to 1. By default no part has any of the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// [`Part::Retiring`].
    pub retiring: Share,
    /// [`Part::BadSpeculation`].
    pub bad_speculation: Share,
    /// [`Part::FetchBandwidth`].
    pub fetch_bandwidth: Share,
    /// [`Part::FetchLatency`].
    pub fetch_latency: Share,
    /// [`Part::CoreBound`].
    pub core_bound: Share,
    /// [`Part::MemoryBound`].
    pub memory_bound: Share,
    /// [`Part::L1Bound`], part of the one before; absent where there is none.
    #[serde(default, skip_serializing_if = "Share::is_none")]
    pub l1_bound: Share,
    /// [`Part::Unexplained`].
    pub unexplained: Share,
}

impl Parts {
    /// From the share of each part.
    pub fn each(of: impl Fn(Part) -> Share) -> Self {
        Self {
            retiring: of(Part::Retiring),
            bad_speculation: of(Part::BadSpeculation),
            fetch_bandwidth: of(Part::FetchBandwidth),
            fetch_latency: of(Part::FetchLatency),
            core_bound: of(Part::CoreBound),
            memory_bound: of(Part::MemoryBound),
            l1_bound: of(Part::L1Bound),
            unexplained: of(Part::Unexplained),
        }
    }

    /// The share of a part.
    pub fn of(&self, part: Part) -> &Share {
        match part {
            Part::Retiring => &self.retiring,
            Part::BadSpeculation => &self.bad_speculation,
            Part::FetchBandwidth => &self.fetch_bandwidth,
            Part::FetchLatency => &self.fetch_latency,
            Part::CoreBound => &self.core_bound,
            Part::MemoryBound => &self.memory_bound,
            Part::L1Bound => &self.l1_bound,
            Part::Unexplained => &self.unexplained,
        }
    }

    /// Sets the share of a part.
    pub fn set(&mut self, part: Part, share: Share) {
        *match part {
            Part::Retiring => &mut self.retiring,
            Part::BadSpeculation => &mut self.bad_speculation,
            Part::FetchBandwidth => &mut self.fetch_bandwidth,
            Part::FetchLatency => &mut self.fetch_latency,
            Part::CoreBound => &mut self.core_bound,
            Part::MemoryBound => &mut self.memory_bound,
            Part::L1Bound => &mut self.l1_bound,
            Part::Unexplained => &mut self.unexplained,
        } = share;
    }

    /// With no part above what the least of the others leaves, as they sum to 1; Retiring aside, since what removes a
    /// cause often retires less, too.
    #[must_use]
    pub fn tightened(&self) -> Self {
        let lost = |part: Part| part != Part::Retiring;
        let least: f64 = self.iter().filter(|(part, _)| lost(*part)).map(|(_, of)| of.low).sum();
        Self::each(|part| {
            let of = self.of(part);
            let own = if lost(part) { of.low } else { 0.0 };
            let high = of.high.min(1.0 - (least - own)).max(of.value);
            of.within(Interval { high, ..of.interval() })
        })
    }

    /// All parts with their shares.
    pub fn iter(&self) -> impl Iterator<Item = (Part, &Share)> {
        ALL.into_iter().map(|part| (part, self.of(part)))
    }

    /// Nothing is known, for this reason: each part may be all of it.
    pub fn unknown(reason: Reason) -> Self {
        let left = Share::known(Interval::new(1.0, 0.0, 1.0), Source::Residual);
        Self::each(|part| match part {
            Part::Unexplained => left.clone().because(Some(reason.clone())),
            _ => Share::unknown(1.0, reason.clone()),
        })
    }

    /// The parts in only this share of the piece's time, if they may be anything there that is possible with those of
    /// all of it: what happens in the rest is not known apart.
    #[must_use]
    pub fn within(&self, share: f64) -> Self {
        Self::each(|part| {
            let of = self.of(part);
            let (least, most) = ((of.low - (1.0 - share)) / share, of.high / share);
            of.within(Interval::new(of.value, least.max(0.0), most.min(1.0)))
        })
    }

    /// The parts with the sampling error of a mix of code with this many samples: two standard deviations.
    #[must_use]
    pub fn sampled(&self, samples: u64) -> Self {
        Self::each(|part| {
            let of = self.of(part).clone();
            let value = of.value.clamp(0.0, 1.0);
            let error = 2.0 * (value * (1.0 - value) / samples.max(1) as f64).sqrt();
            let share = of.interval().plus(Interval::new(0.0, -error, error)).clamped(0.0, 1.0);
            of.with(share)
        })
    }

    /// The parts of several pieces of code together, each with its time. Errors add up, since they may have
    /// the same cause: the clock, the cost of a misprediction. A part's source and reason are those of the
    /// piece that has most of it.
    pub fn sum<'a>(all: impl Iterator<Item = (f64, &'a Self)> + Clone) -> Self {
        let time: f64 = all.clone().map(|(time, _)| time).sum();
        if time <= 0.0 {
            return Self::unknown(Reason::NoTime);
        }
        Self::each(|part| {
            let weighted = |(own, parts): (f64, &Self)| parts.of(part).interval().times(own / time);
            let share = all.clone().map(weighted).fold(Interval::default(), Interval::plus_alike);
            // Where none has any, the one that may have most.
            let amount = |(own, parts): &(f64, &Self)| {
                let share = parts.of(part);
                (own * share.value, own * share.high)
            };
            let most = all.clone().max_by(|a, b| {
                let (a, b) = (amount(a), amount(b));
                a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
            });
            most.map_or_else(Share::default, |(_, most)| most.of(part).within(share))
        })
    }
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The name of its part; of Frontend and Backend Bound their own.
    pub id: &'static str,
    /// As shown.
    pub label: &'static str,
    /// 0; 1 for a part of Frontend or Backend Bound, 2 for a part of such a part.
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
        let mut tree = vec![
            node(Part::Retiring, 0),
            node(Part::BadSpeculation, 0),
            sum("frontend_bound", "Frontend Bound", self.frontend()),
            node(Part::FetchLatency, 1),
            node(Part::FetchBandwidth, 1),
            sum("backend_bound", "Backend Bound", self.backend()),
            node(Part::CoreBound, 1),
            node(Part::MemoryBound, 1),
        ];
        tree.extend((self.l1_bound.value > 0.0).then(|| node(Part::L1Bound, 2)));
        tree.push(node(Part::Unexplained, 0));
        tree
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
        self.l1_bound.value > 0.5 * self.memory_bound.value
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

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
