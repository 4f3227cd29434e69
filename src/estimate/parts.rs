//! The shares of all parts of a piece of code's time, and sums of them.

use crate::evidence::{Interval, Reason};
use crate::part::{ALL, Part, WITHIN};
use crate::share::{Share, Source};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// The shares of all parts; their values, without the children, sum to 1. By default no part has any of the time.
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
    /// [`Part::Unexplained`].
    pub unexplained: Share,
    /// What these consist of; one that is absent is not known apart from the others of its parent.
    #[serde(flatten)]
    pub children: Children,
}

/// Parts within others, and Backend Bound.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Children(BTreeMap<Part, Share>);

impl Parts {
    /// From the share of each part that makes up the time.
    pub fn each(of: impl Fn(Part) -> Share) -> Self {
        Self {
            retiring: of(Part::Retiring),
            bad_speculation: of(Part::BadSpeculation),
            fetch_bandwidth: of(Part::FetchBandwidth),
            fetch_latency: of(Part::FetchLatency),
            core_bound: of(Part::CoreBound),
            memory_bound: of(Part::MemoryBound),
            unexplained: of(Part::Unexplained),
            children: Children::default(),
        }
    }

    /// The share of a part; `None` for a child that is not known apart.
    pub fn get(&self, part: Part) -> Option<&Share> {
        match part {
            Part::Retiring => Some(&self.retiring),
            Part::BadSpeculation => Some(&self.bad_speculation),
            Part::FetchBandwidth => Some(&self.fetch_bandwidth),
            Part::FetchLatency => Some(&self.fetch_latency),
            Part::CoreBound => Some(&self.core_bound),
            Part::MemoryBound => Some(&self.memory_bound),
            Part::Unexplained => Some(&self.unexplained),
            child => self.children.0.get(&child),
        }
    }

    /// The share of a part, of a child that is not known apart that of its parent.
    pub fn of(&self, part: Part) -> &Share {
        let parent = || part.parent().map(|parent| self.of(parent));
        self.get(part).or_else(parent).unwrap_or(&self.unexplained)
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
            Part::Unexplained => &mut self.unexplained,
            child => self.children.0.entry(child).or_default(),
        } = share;
    }

    /// Core and Memory Bound together; without a reason.
    pub(crate) fn backend(&self) -> Share {
        let sum = self.core_bound.plus(&self.memory_bound);
        match self.get(Part::BackendBound) {
            Some(Share { low, high, .. }) => {
                let (low, high) = (sum.low.max(*low), sum.high.min(*high));
                Share { low: low.min(sum.value), high: high.max(sum.value), ..sum }
            }
            None => sum,
        }
    }

    /// The children of a part that are known and may have any of the time.
    pub fn below(&self, part: Part) -> impl Iterator<Item = (Part, &Share)> {
        let known = part.children().filter_map(|child| Some((child, self.get(child)?)));
        known.filter(|(_, share)| share.high > 0.0)
    }

    /// Each share changed.
    #[must_use]
    fn map(&self, of: impl Fn(Part, &Share) -> Share) -> Self {
        let mut all = Self::each(|part| of(part, self.of(part)));
        let children = self.children.0.iter().map(|(part, share)| (*part, of(*part, share)));
        all.children = Children(children.collect());
        all.fitted()
    }

    /// With no child above its parent, nor above what the least of the others leaves of it.
    #[must_use]
    fn fitted(mut self) -> Self {
        for parent in ALL {
            let whole = self.of(parent).interval();
            let own = |parts: &Self| -> Vec<(Part, Share)> {
                let known = parent.children().filter_map(|part| Some((part, parts.get(part)?)));
                known.map(|(part, share)| (part, share.clone())).collect()
            };
            let all = own(&self);
            let (values, least) = all
                .iter()
                .fold((0.0, 0.0), |(values, least), (_, of)| (values + of.value, least + of.low));
            // As far as rounding and a parent that gave way let them be more.
            let scaled = |sum: f64, most: f64| if sum > most { most / sum } else { 1.0 };
            let (scale, less) = (scaled(values, whole.value), scaled(least, whole.low));
            for (part, of) in all {
                let (value, low) = (of.value * scale, of.low * less);
                let most = whole.high - (least * less - low);
                let share = Interval::new(value, low, of.high.min(most));
                self.set(part, of.within(share));
            }
        }
        self
    }

    /// With no part above what the least of the others leaves, as they sum to 1; Retiring aside, since what removes a
    /// cause often retires less, too.
    #[must_use]
    pub fn tightened(&self) -> Self {
        let lost = |part: Part| part != Part::Retiring;
        let backend = self.backend().low;
        let apart = |part: Part| !matches!(part, Part::CoreBound | Part::MemoryBound);
        let others = self.iter().filter(|(part, _)| lost(*part) && apart(*part));
        let least = backend + others.map(|(_, of)| of.low).sum::<f64>();
        self.map(|part, of| {
            let own = match part {
                Part::CoreBound => backend - self.memory_bound.low,
                Part::MemoryBound => backend - self.core_bound.low,
                Part::BackendBound => backend,
                _ if lost(part) => of.low,
                _ => 0.0,
            };
            let most = if part.parent().is_some() { 1.0 } else { 1.0 - (least - own) };
            of.within(Interval { high: of.high.min(most).max(of.value), ..of.interval() })
        })
    }

    /// All parts that make up the time, with their shares.
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
        self.map(|_, of| {
            let (least, most) = ((of.low - (1.0 - share)) / share, of.high / share);
            of.within(Interval::new(of.value, least.max(0.0), most.min(1.0)))
        })
    }

    /// The parts with the sampling error of a mix of code with this many samples: two standard deviations.
    #[must_use]
    pub fn sampled(&self, samples: u64) -> Self {
        self.map(|_, of| {
            let value = of.value.clamp(0.0, 1.0);
            let error = 2.0 * (value * (1.0 - value) / samples.max(1) as f64).sqrt();
            let share = of.interval().plus(Interval::new(0.0, -error, error)).clamped(0.0, 1.0);
            of.clone().with(share)
        })
    }

    /// The parts of several pieces of code together, each with its time. Errors add up, since they may have
    /// the same cause: the clock, the cost of a misprediction. A part's reason is that of the piece
    /// that has most of it.
    pub fn sum<'a>(all: impl Iterator<Item = (f64, &'a Self)> + Clone) -> Self {
        let time: f64 = all.clone().map(|(time, _)| time).sum();
        if time <= 0.0 {
            return Self::unknown(Reason::NoTime);
        }
        let sum = |part: Part| {
            let weighted = |(own, parts): (f64, &Self)| parts.most(part).times(own / time);
            let share = all.clone().map(weighted).fold(Interval::default(), Interval::plus_alike);
            // Where none has any, the one that may have most.
            let amount = |(own, share): &(f64, &Share)| (own * share.value, own * share.high);
            let known = all.clone().filter_map(|(own, parts)| Some((own, parts.get(part)?)));
            let most = known.clone().max_by(|a, b| {
                let (a, b) = (amount(a), amount(b));
                a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
            });
            let sources = known.map(|(own, of)| (of.source, own * of.value));
            let source = Source::of_sum(sources);
            most.map(|(_, most)| most.within(share))
                .map(|of| Share { source: source.unwrap_or(of.source), ..of })
        };
        let mut parts = Self::each(|part| sum(part).unwrap_or_default());
        for part in WITHIN {
            // Of pieces of which some do not know it, it is known if one has any.
            let is_open =
                all.clone().any(|(_, of)| of.get(part).is_none() && of.most(part).high > 0.0);
            if let Some(share) = sum(part).filter(|share| share.value > 0.0 || !is_open) {
                parts.set(part, share);
            }
        }
        if all.clone().any(|(_, of)| of.get(Part::BackendBound).is_some()) {
            let weighted =
                |(own, parts): (f64, &Self)| parts.backend().interval().times(own / time);
            let share = all.map(weighted).fold(Interval::default(), Interval::plus_alike);
            parts.set(Part::BackendBound, parts.backend().with(share));
        }
        parts.fitted()
    }

    /// With other intervals, which are within those that the parts have.
    #[must_use]
    pub(crate) fn narrowed(&self, to: impl Fn(Part, Interval) -> Interval) -> Self {
        self.map(|part, of| of.within(to(part, of.interval()))).tightened()
    }

    /// The interval of a part: of a child that is not known apart, anything up to its parent.
    pub(crate) fn most(&self, part: Part) -> Interval {
        if part == Part::BackendBound {
            return self.backend().interval();
        }
        match self.get(part) {
            Some(share) => share.interval(),
            None => Interval { value: 0.0, low: 0.0, high: self.of(part).high },
        }
    }
}

/// As members of the parts.
impl Serialize for Children {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(part, share)| (part.name(), share)))
    }
}

/// Of documents that may have others.
impl<'de> Deserialize<'de> for Children {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Children;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("parts by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Children, A::Error> {
                let mut found = BTreeMap::new();
                while let Some(name) = all.next_key::<String>()? {
                    match Part::further().find(|part| part.name() == name) {
                        Some(part) => drop(found.insert(part, all.next_value()?)),
                        None => drop(all.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Children(found))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
