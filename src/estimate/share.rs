//! A part's share of the time with its interval, where it comes from, and why it is not known.

use crate::evidence::{Interval, Reason};
use serde::{Deserialize, Serialize};
use std::fmt;

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
    /// What a run pinned to one CPU lacks, where recorded addresses show contention.
    #[serde(rename = "compared with one CPU")]
    Compared,
    /// The remainder, where loads are known to miss often enough for it, or code not to fit. Older documents have
    /// `residual` for it.
    Inferred,
    /// Isolated in part, and inferred in part.
    #[serde(rename = "measured and inferred")]
    IsolatedInferred,
    /// Isolated in part, and modelled in part.
    #[serde(rename = "measured and modelled")]
    IsolatedModelled,
    /// The remainder that is unexplained.
    Residual,
    /// Nothing is there that could take time: no loads that miss, code that fits, another bound in isolation.
    #[default]
    #[serde(alias = "")]
    Excluded,
    /// Not known, at most the upper end. Older documents have `no evidence` for it.
    #[serde(alias = "no evidence")]
    Bounded,
    /// A sum of parts with other sources than those of the two above.
    #[serde(rename = "sum of its parts")]
    Sum,
    /// The mean of a source line's blocks, which have different sources.
    #[serde(rename = "of several blocks")]
    Several,
}

/// A term of a sum with less than this share of it is not named among the sources.
const NAMED: f64 = 0.1;

impl Source {
    /// As shown: without a PMU nothing counts slots.
    pub fn label(self) -> String {
        match self {
            Self::Counted => "executions × slots".to_owned(),
            _ => self.to_string(),
        }
    }

    /// The source of a sum of values with these; `None` where the sum is 0.
    pub(crate) fn of_sum(terms: impl Iterator<Item = (Self, f64)>) -> Option<Self> {
        let mut sums: Vec<(Self, f64)> = Vec::new();
        for (source, value) in
            terms.flat_map(|(source, value)| source.halves().map(|of| (of, value)))
        {
            match sums.iter_mut().find(|(known, _)| *known == source) {
                Some((_, sum)) => *sum += value,
                None => sums.push((source, value)),
            }
        }
        let all: f64 = sums.iter().map(|(_, sum)| sum).sum();
        sums.retain(|(_, sum)| *sum > 0.0 && *sum >= NAMED * all);
        let has = |source| sums.iter().any(|(known, _)| *known == source);
        Some(match sums[..] {
            [] => return None,
            [(one, _)] => one,
            [_, _] if has(Self::Isolated) && has(Self::Inferred) => Self::IsolatedInferred,
            [_, _] if has(Self::Isolated) && has(Self::Modelled) => Self::IsolatedModelled,
            _ => Self::Sum,
        })
    }

    /// Both sources of what has two.
    fn halves(self) -> [Self; 2] {
        match self {
            Self::IsolatedInferred => [Self::Isolated, Self::Inferred],
            Self::IsolatedModelled => [Self::Isolated, Self::Modelled],
            one => [one, one],
        }
    }
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

    /// Whether there is a value; else only the interval and the reason are known.
    pub fn has_value(&self) -> bool {
        self.value > 0.0 || self.source != Source::Bounded
    }

    pub(crate) fn with(self, share: Interval) -> Self {
        let Interval { value, low, high } = share;
        Self { value, low, high, ..self }
    }

    /// With another interval; an unknown share that can then only be 0 is known to be none.
    pub(crate) fn within(&self, share: Interval) -> Self {
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
