//! The parts of a piece of code's time, their sources, and sums of them.

use crate::interval::Interval;
use crate::reason::Reason;

/// A part of the time, in slots of the core's width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Slots of retired µops.
    Retiring,
    /// Mispredicted branches.
    BadSpeculation,
    /// Fetching and decoding, with all code at hand.
    FetchBandwidth,
    /// Code that is not at hand.
    FetchLatency,
    /// Ports, dependencies, store forwarding and dividers.
    CoreBound,
    /// Loads beyond the first cache.
    MemoryBound,
    /// What none of them covers.
    Unexplained,
}

/// All parts, in the order of documents.
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
            Self::Unexplained => "unexplained",
        }
    }

    /// The part with this name.
    pub fn of(name: &str) -> Option<Self> {
        ALL.into_iter().find(|part| part.name() == name)
    }
}

/// Where a share comes from that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Exact counts and the µop table, over sampled time.
    Counted,
    /// Modelled mispredictions × what one costs on this host.
    Modelled,
    /// A loop or block measured in isolation.
    Isolated,
    /// What is left, where loads are known to miss often enough for it, or code not to fit.
    Inferred,
    /// What is left of all.
    Residual,
    /// Nothing is there that could take time: no loads that miss, code that fits, another bound in isolation.
    Excluded,
}

/// One part's share of the time, 0 to 1; or the most that it can be, where it is not known. The latter is above 0: what
/// can only be 0 is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The share; from 0 to its most where it is not known.
    pub share: Interval,
    /// Where it comes from; `None`: it is not known.
    pub source: Option<Source>,
    /// What must be known of it: why it is not known, or what it may be instead.
    pub reason: Option<Reason>,
    // Made by `known` and `unknown` alone.
    _made: Made,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Made;

impl Share {
    /// A share that is known.
    pub fn known(share: Interval, source: Source) -> Self {
        Self { share, source: Some(source), reason: None, _made: Made }
    }

    /// Of something that is not there.
    pub fn none() -> Self {
        Self::known(Interval::default(), Source::Excluded)
    }

    /// Anything up to `most`.
    pub fn unknown(most: f64, reason: Reason) -> Self {
        match most > 0.0 {
            true => {
                let share = Interval::new(0.0, 0.0, most);
                Self { share, source: None, reason: Some(reason), _made: Made }
            }
            false => Self::none(),
        }
    }

    /// With what must be known of it.
    #[must_use]
    pub fn because(self, reason: Option<Reason>) -> Self {
        Self { reason, ..self }
    }

    /// As far as another interval of it goes: one that can only be 0 is known to be none.
    fn within(&self, share: Interval) -> Self {
        match self.source {
            None if share.high <= 0.0 => Self::none(),
            _ => Self { share, ..self.clone() },
        }
    }
}

/// The shares of all parts, in the order of [`ALL`]; their values sum to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts([Share; 7]);

impl Parts {
    /// No part has any of the time, before they are set.
    pub fn none() -> Self {
        Self(ALL.map(|_| Share::none()))
    }

    /// The share of a part.
    pub fn of(&self, part: Part) -> &Share {
        &self.0[part as usize]
    }

    /// Sets the share of a part.
    pub fn set(&mut self, part: Part, share: Share) {
        self.0[part as usize] = share;
    }

    /// With no part above what the least of the others leaves, as they sum to 1; Retiring aside, since what removes a
    /// cause often retires less, too.
    #[must_use]
    pub fn tightened(mut self) -> Self {
        let lost = |part: Part| part != Part::Retiring;
        let least: f64 =
            self.iter().filter(|(part, _)| lost(*part)).map(|(_, of)| of.share.low).sum();
        for part in ALL {
            let of = &mut self.0[part as usize];
            let own = if lost(part) { of.share.low } else { 0.0 };
            let high = of.share.high.min(1.0 - (least - own)).max(of.share.value);
            *of = of.within(Interval { high, ..of.share });
        }
        self
    }

    /// All parts with their shares.
    pub fn iter(&self) -> impl Iterator<Item = (Part, &Share)> {
        ALL.into_iter().zip(&self.0)
    }

    /// Nothing is known, for this reason: each part may be all of it.
    pub fn unknown(reason: Reason) -> Self {
        let left = Share::known(Interval::new(1.0, 0.0, 1.0), Source::Residual);
        Self(ALL.map(|part| match part {
            Part::Unexplained => left.clone().because(Some(reason.clone())),
            _ => Share::unknown(1.0, reason.clone()),
        }))
    }

    /// The parts in only this share of the piece's time, if they may be anything there that is possible with those of
    /// all of it: what happens in the rest is not known apart.
    #[must_use]
    pub fn within(&self, share: f64) -> Self {
        let mut parts = self.clone();
        for of in &mut parts.0 {
            let Interval { value, low, high } = of.share;
            let (least, most) = ((low - (1.0 - share)) / share, high / share);
            *of = of.within(Interval::new(value, least.max(0.0), most.min(1.0)));
        }
        parts
    }

    /// The parts with the error of being of a mix of code that so many samples show: two standard deviations.
    #[must_use]
    pub fn sampled(&self, samples: u64) -> Self {
        let mut parts = self.clone();
        for of in &mut parts.0 {
            let value = of.share.value.clamp(0.0, 1.0);
            let error = 2.0 * (value * (1.0 - value) / samples.max(1) as f64).sqrt();
            let own = of.share;
            of.share = own.plus(Interval::new(0.0, -error, error)).clamped(0.0, 1.0);
        }
        parts
    }

    /// The parts of several pieces of code together, each with its time. Errors add up, since they may have
    /// the same cause: the clock, the cost of a misprediction. A part's source and reason are those of the
    /// piece that has most of it.
    pub fn sum<'a>(all: impl Iterator<Item = (f64, &'a Self)> + Clone) -> Self {
        let time: f64 = all.clone().map(|(time, _)| time).sum();
        if time <= 0.0 {
            return Self::unknown(Reason::NoTime);
        }
        let mut sum = Self::none();
        for part in ALL {
            let weighted = |(own, parts): (f64, &Self)| parts.of(part).share.times(own / time);
            let share = all.clone().map(weighted).fold(Interval::default(), Interval::plus_alike);
            // Where none has any, the one that may have most.
            let amount = |(own, parts): &(f64, &Self)| {
                let share = parts.of(part).share;
                (own * share.value, own * share.high)
            };
            let most = all.clone().max_by(|a, b| {
                let (a, b) = (amount(a), amount(b));
                a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
            });
            let Some((_, most)) = most else { continue };
            sum.set(part, most.of(part).within(share));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: with 0.5 or more elsewhere, 0.5 is left; what retires is not minded.
    #[test]
    fn no_part_has_what_the_others_have_at_least() {
        let mut parts = Parts::none();
        let all = [
            (Part::BadSpeculation, 0.6, 0.5),
            (Part::Retiring, 0.3, 0.2),
            (Part::CoreBound, 0.1, 0.0),
        ];
        for (part, value, low) in all {
            parts.set(part, Share::known(Interval::new(value, low, 1.0), Source::Inferred));
        }
        let parts = parts.tightened();
        let high = |part| parts.of(part).share.high;
        assert_eq!((high(Part::CoreBound), high(Part::Retiring)), (0.5, 0.5));
        assert_eq!(high(Part::BadSpeculation), 1.0);
    }

    /// By hand: of four seconds two are retiring (within 1 %). In one of them that may be none or all of it; in three,
    /// it is a third at least, and two thirds at most.
    #[test]
    fn a_part_of_the_time_may_divide_otherwise() {
        let mut half = Parts::none();
        let share = Interval::relative(0.5, 0.01);
        half.set(Part::Retiring, Share::known(share, Source::Counted));
        let of = |share: f64| half.within(share).of(Part::Retiring).share;
        assert_eq!(of(0.25), Interval::new(0.5, 0.0, 1.0));
        let most = of(0.75);
        assert!((most.low - 0.245 / 0.75).abs() < 1e-12, "{most:?}");
        assert!((most.high - 0.505 / 0.75).abs() < 1e-12, "{most:?}");
        assert!((of(1.0).low - share.low).abs() < 1e-12);
        // By hand: a half of 100 samples is known within 2 × 5 %.
        let sampled = half.sampled(100).of(Part::Retiring).share;
        assert!((sampled.high - 0.5 - 0.1_f64.hypot(0.005)).abs() < 1e-12, "{sampled:?}");
    }

    /// By hand: 3 of 4 seconds half retiring, 1 second all unexplained: 37.5 % retiring, 62.5 % unexplained; what
    /// is not known may be retiring, too: 0.75 × 0.6 + 0.25.
    #[test]
    fn parts_are_weighted_by_time() {
        let mut half = Parts::none();
        let share = |value: f64| Share::known(Interval::relative(value, 0.2), Source::Counted);
        half.set(Part::Retiring, share(0.5));
        half.set(Part::Unexplained, share(0.5));
        let none = Parts::unknown(Reason::given("no counts"));
        let sum = Parts::sum([(3.0, &half), (1.0, &none)].into_iter());
        assert_eq!(sum.of(Part::Retiring).share.value, 0.375);
        assert!((sum.of(Part::Retiring).share.high - 0.7).abs() < 1e-12);
        assert_eq!(sum.of(Part::Unexplained).share.value, 0.625);
        let total: f64 = sum.iter().map(|(_, share)| share.share.value).sum();
        assert!((total - 1.0).abs() < 1e-12);
        assert_eq!(sum.of(Part::Unexplained).reason, None, "the first has more of it");
    }
}
