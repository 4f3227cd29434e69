//! Divides the time of a piece of code into parts, by its evidence.
//!
//! In this order, as shares of the sampled time T: retiring R ÷ T; mispredictions B ÷ T; what the code takes in
//! isolation beyond retiring, (I − R) ÷ T, to Fetch Bandwidth or Core Bound by its bound; what contending threads cost,
//! C ÷ T, to Memory Bound. The rest, 1 − (I + B + C) ÷ T, goes to Memory Bound as far as latencies of loads, to Core
//! Bound as far as latencies of dependent instructions, and to Fetch Latency as far as fetching can account for it; what
//! waiting and fetching could both explain, and what nothing can, stays unexplained.
//!
//! Something that is not known has a most that it can take: so much goes to no other part for certain, and each
//! interval has what would be there if it took that, or nothing.

use crate::evidence::{BoundBy, Evidence, Interval, Reason};
use crate::part::{CONTENTION, Part};
use crate::parts::Parts;
use crate::rest::{Attributed, Rest, attribute};
use crate::share::{Share, Source};
use crate::within::Within;

/// From this multiple of the program's own time on, a measurement in isolation is of other work.
const SLOWER: f64 = 1.25;

/// Share of [`Isolated::among`] that all pieces have alike: compiled code leaves much or little to execute beside any of it,
/// while one block waits for those around it and another does not.
const ALIKE: f64 = 0.5;

/// Divides the time.
pub fn divide(evidence: &Evidence) -> Parts {
    divide_all(std::slice::from_ref(evidence))
}

/// Divides the time of several pieces of code that run among each other, as one: a sample is often taken in the piece
/// after the one that took the time, and one runs while another waits.
pub fn divide_all(all: &[Evidence]) -> Parts {
    divided(all, Errors::All)
}

/// [`divide_all`] with the errors of [`Isolated::among`] that are alike.
pub(crate) fn divide_alike(all: &[Evidence]) -> Parts {
    divided(all, Errors::Alike)
}

/// Which errors of [`Isolated::among`] there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errors {
    All,
    Alike,
}

fn divided(all: &[Evidence], errors: Errors) -> Parts {
    let timed: Vec<&Evidence> = all.iter().filter(|one| one.cycles.value > 0.0).collect();
    if timed.is_empty() {
        return Parts::unknown(Reason::NoTime);
    }
    let (known, unknown): (Vec<&Evidence>, Vec<&Evidence>) =
        timed.into_iter().partition(|one| one.retiring.is_ok());
    let mut parts: Vec<(f64, Parts)> = Vec::new();
    if !known.is_empty() {
        let known: Vec<Evidence> = known.into_iter().map(believable).collect();
        parts.push((known.iter().map(|one| one.cycles.value).sum(), of_known(&known, errors)));
    }
    for one in unknown {
        let why = one.retiring.as_ref().err().cloned();
        parts.extend(why.map(|why| (one.cycles.value, Parts::unknown(why))));
    }
    Parts::sum(parts.iter().map(|(time, parts)| (*time, parts)))
}

/// The time of all: errors of samples are independent, and at least that of the best known piece is left, which has that
/// of the clock.
pub(crate) fn whole(all: &[Evidence]) -> Interval {
    let time = all.iter().map(|one| one.cycles).fold(Interval::default(), Interval::plus);
    let relative = |of: Interval| of.error() / of.value;
    let least = all.iter().map(|one| relative(one.cycles)).fold(f64::INFINITY, f64::min);
    Interval::relative(time.value, relative(time).max(least))
}

/// The share of so many cycles that the retired µops of all take, as far as they are known.
pub(crate) fn retired(all: &[Evidence], cycles: f64) -> Interval {
    let known = all.iter().filter(|one| one.retiring.is_ok()).map(believable);
    let known = known.collect::<Vec<_>>();
    Known::of(&known, Interval::exact(cycles), Errors::All).retiring
}

fn of_known(all: &[Evidence], errors: Errors) -> Parts {
    let time = whole(all);
    let mut known = Known::of(all, time, errors);
    known.reconcile();
    let slack = known.retiring.error() / known.retiring.value.max(f64::MIN_POSITIVE);
    let left = Rest::of(all, known.rest(time), (time.value, slack.min(1.0)));
    known.give_way(&left);
    let mut parts = Parts::default();
    let share = |share: Interval, source| Share::known(share.clamped(0.0, 1.0), source);
    parts.set(Part::Retiring, share(known.retiring, Source::Counted));
    let missing = all.iter().filter_map(|one| one.mispredicted.unknown.as_ref());
    let missing = missing.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, why)| why.clone());
    let wrong = known.mispredicted.plus_alike(Interval::new(0.0, 0.0, left.mispredicted()));
    let wrong = match &missing {
        Some(why) if known.mispredicted.value == 0.0 => {
            Share::unknown(wrong.high.min(1.0), why.clone())
        }
        _ => share(wrong, Source::Modelled).because(missing),
    };
    parts.set(Part::BadSpeculation, wrong);
    let is_measured = |part| all.iter().any(|one| part_of(one) == Some(part));
    for (part, excess) in [(Part::FetchBandwidth, known.front), (Part::CoreBound, known.core)] {
        if is_measured(part) {
            parts.set(part, share(excess, Source::Isolated));
        }
    }
    if known.loads.high > 0.0 {
        parts.set(Part::MemoryBound, share(known.loads, Source::Isolated));
    }
    let attributed = attribute(&left, &mut parts);
    known.without_bound(&mut parts);
    known.contend(all, &mut parts);
    known.backend(time, (&left, &attributed), &mut parts);
    let Known { loads, core, .. } = known;
    Within { all, time: time.value, loads, core, attributed }.enter(&mut parts);
    parts.tightened()
}

/// The evidence without a measurement in isolation that is far longer than the program's own time: it was not of the
/// same work. One that is shorter than its µops say is right: the table is wrong.
fn believable(evidence: &Evidence) -> Evidence {
    let mut checked = evidence.clone();
    if let Ok(found) = &evidence.isolated {
        let alone = found.whole();
        checked.retiring = checked.retiring.map(|one| one.clamped(0.0, alone.high));
        let times = alone.low / evidence.cycles.high;
        if times > SLOWER {
            checked.isolated = Err(Reason::OtherWork(times));
        }
    }
    checked
}

/// Where what a piece takes in isolation beyond retiring belongs.
fn part_of(evidence: &Evidence) -> Option<Part> {
    match evidence.isolated.as_ref().ok()?.bound {
        BoundBy::FrontEnd => Some(Part::FetchBandwidth),
        BoundBy::Core => Some(Part::CoreBound),
        BoundBy::IssueWidth => Some(Part::Retiring),
        BoundBy::Unknown => None,
    }
}

/// [`Evidence::certain`] where it is not known: in half of the latency at least nothing else executes, and only such
/// cycles are Memory Bound in Intel's tree.
pub const IDLE: f64 = 0.5;

/// A sum of cycles in isolation. Errors of measurements may have the same cause; those of [`Isolated::among`] have in part.
struct Alone {
    sum: Interval,
    among: Vec<Interval>,
}

impl Alone {
    const EMPTY: Self =
        Self { sum: Interval { value: 0.0, low: 0.0, high: 0.0 }, among: Vec::new() };

    fn add(&mut self, one: Interval, among: Interval) {
        self.sum = self.sum.plus_alike(one);
        self.among.push(among);
    }

    fn whole(&self, errors: Errors) -> Interval {
        let among = match errors {
            Errors::All => Interval::sum(&self.among, ALIKE),
            Errors::Alike => {
                let all = Interval::sum(&self.among, 1.0);
                let half = |of: f64| all.value + ALIKE * (of - all.value);
                Interval::new(all.value, half(all.low), half(all.high))
            }
        };
        let among = Interval { value: 0.0, low: -among.below(), high: among.above() };
        self.sum.plus(among).clamped(0.0, f64::INFINITY)
    }
}

/// The shares that are known in themselves.
#[derive(Default)]
struct Known {
    retiring: Interval,
    mispredicted: Interval,
    /// Time in isolation beyond retiring, by its bound there.
    front: Interval,
    core: Interval,
    /// Of what is behind the front end: loads that wait for L1 or for stores.
    loads: Interval,
    /// Contention of threads.
    contended: Interval,
    unknown: Interval,
    /// `unknown` with the error of what code takes among other code.
    loose: Interval,
    /// Time in isolation, or the least of it, where it is not known.
    alone: Interval,
}

impl Known {
    fn of(all: &[Evidence], time: Interval, errors: Errors) -> Self {
        let mut sum = Self::default();
        let [mut slots, mut front, mut core, mut loads, mut unknown, mut loose, mut alone] =
            [const { Alone::EMPTY }; 7];
        // What loads and other instructions may both have.
        let mut either = 0.0;
        for one in all {
            let retired = one.retiring.clone().unwrap_or_default();
            sum.retiring = sum.retiring.plus_alike(retired);
            sum.mispredicted = sum.mispredicted.plus_alike(one.mispredicted.cycles);
            let contended = one.contention.map(|of| of.cycles).unwrap_or_default();
            sum.contended = sum.contended.plus_alike(contended);
            let Ok(found) = &one.isolated else {
                sum.alone = sum.alone.plus_alike(retired);
                continue;
            };
            let excess = found.cycles.minus(retired).clamped(0.0, f64::INFINITY);
            let more = found.cycles.value * found.among;
            // Around a value that is at least so much, as which it is believed where it is less.
            let around = |of: f64, least: f64| {
                Interval::new(of.max(least), (of - more).max(least), (of + more).max(least))
            };
            let among = around(found.cycles.value - retired.value, 0.0);
            let longer = if found.cycles.value > retired.value { found.cycles } else { retired };
            alone.add(longer, around(found.cycles.value, retired.value));
            match part_of(one) {
                Some(Part::FetchBandwidth) => front.add(excess, among),
                Some(Part::CoreBound) => {
                    loads.add(excess.times(found.loads), among.times(found.loads));
                    core.add(excess.times(1.0 - found.loads), among.times(1.0 - found.loads));
                    let sure = if found.loads < 1.0 { one.certain } else { 1.0 };
                    either += (1.0 - sure) * found.loads * excess.value;
                }
                Some(_) => slots.add(excess, among),
                // What it takes among other code is no matter of what bounds it alone.
                None => {
                    unknown.add(excess, Interval::exact(excess.value));
                    loose.add(excess, among);
                }
            }
        }
        for (of, own) in [
            (&mut sum.retiring, slots),
            (&mut sum.front, front),
            (&mut sum.core, core),
            (&mut sum.loads, loads),
            (&mut sum.unknown, unknown),
            (&mut sum.loose, loose),
            (&mut sum.alone, alone),
        ] {
            *of = of.plus_alike(own.whole(errors));
        }
        sum.loads = Interval { low: (sum.loads.low - either).max(0.0), ..sum.loads };
        sum.core = Interval { high: sum.core.high + either, ..sum.core };
        sum.all().into_iter().for_each(|one| *one = one.over(time));
        sum.alone = sum.alone.over(time);
        sum.loose = sum.loose.over(time);
        sum
    }

    fn all(&mut self) -> [&mut Interval; 7] {
        [
            &mut self.retiring,
            &mut self.mispredicted,
            &mut self.front,
            &mut self.core,
            &mut self.loads,
            &mut self.contended,
            &mut self.unknown,
        ]
    }

    /// Where they are more than the whole time, each gives way by its share of the squared errors (least
    /// squares with weights 1/σ²), and may be as much smaller.
    fn reconcile(&mut self) {
        let all = self.all();
        let over: f64 = all.iter().map(|one| one.value).sum::<f64>() - 1.0;
        if over <= 0.0 {
            return;
        }
        let weights = all
            .each_ref()
            .map(|one| one.error().powi(2).max(1e-9) * f64::from(u8::from(one.value > 0.0)));
        let total: f64 = weights.iter().sum();
        for (one, weight) in all.into_iter().zip(weights) {
            let less = (over * weight / total).min(one.value);
            let value = one.value - less;
            *one = Interval::new(value, one.low.min(value - less).max(0.0), one.high);
        }
        // One that reached 0 leaves some over to the others.
        let left: f64 = self.all().iter().map(|one| one.value).sum::<f64>();
        if left > 1.0 {
            self.all().into_iter().for_each(|one| *one = one.times(1.0 / left));
        }
    }

    /// The remainder, with the error of the time itself.
    fn rest(&self, time: Interval) -> Interval {
        let Self { mispredicted, front, core, loads, contended, unknown, .. } = *self;
        let parts = [mispredicted, front, core, loads, contended, unknown];
        let known = parts.iter().fold(self.retiring.value, |sum, one| sum + one.value);
        let of_time = known * time.error() / time.value;
        // Retiring is part of the time in isolation: its error is not another one.
        let errors = self.alone.plus(mispredicted).plus(contended);
        let (below, above) = (errors.above().max(of_time), errors.below().max(of_time));
        let value = (1.0 - known).max(0.0);
        Interval::new(value, (value - below).max(0.0), (value + above).min(1.0))
    }

    /// Unknown mispredictions may exceed the remainder as far as the errors allow: the others are then that much less.
    fn give_way(&mut self, rest: &Rest) {
        let over = rest.excess();
        for one in self.all() {
            *one = Interval::new(one.value, (one.low - over).max(0.0), one.high);
        }
    }

    /// Enters what contention costs, by its kinds.
    fn contend(&self, all: &[Evidence], parts: &mut Parts) {
        let found = || all.iter().filter_map(|one| one.contention);
        let every: f64 = found().map(|one| one.cycles.value).sum();
        if self.contended.value <= 0.0 || every <= 0.0 {
            return;
        }
        for part in CONTENTION {
            let own = found().filter(|one| Part::contending(one.by) == part);
            let own = own.fold(Interval::default(), |sum, one| sum.plus_alike(one.cycles));
            if own.value > 0.0 {
                // As shares, and as much less as the sum gave way.
                let share = own.times(self.contended.value / every).clamped(0.0, 1.0);
                parts.set(part, Share::known(share, Source::Compared));
            }
        }
        let memory = parts.of(Part::MemoryBound).clone();
        let why = Reason::NotSeparated;
        parts.set(Part::MemoryBound, memory.or_more(self.contended, Source::Compared, &why));
    }

    /// Enters Core and Memory Bound together. What code takes longer in isolation than believed is Core Bound instead of a
    /// wait, as far as there is one, so that their sum lacks only what may be neither.
    fn backend(&self, time: Interval, (left, of): (&Rest, &Attributed), parts: &mut Parts) {
        let others = [self.retiring, self.mispredicted, self.front, self.loose];
        let error = others.map(Interval::above).into_iter().fold(0.0, f64::hypot);
        // All of them have the error of the time.
        let known: f64 = others.map(|one| one.value).iter().sum();
        let error = error.max(known * time.error() / time.value);
        let isolated = self.core.plus_alike(self.loads).below();
        let short = (isolated - of.absorbs).max(0.0);
        let less =
            [error, of.doubt, self.contended.below(), short].into_iter().fold(0.0, f64::hypot);
        let sum = parts.backend();
        let low = sum.value - less - left.open() - of.may_be_fetch;
        parts.set(Part::BackendBound, Share { low: low.max(sum.low), ..sum });
    }

    /// Enters what the code takes in isolation by a bound that is not known: it may be any there is.
    fn without_bound(&self, parts: &mut Parts) {
        if self.unknown.value <= 0.0 {
            return;
        }
        for part in [Part::Retiring, Part::FetchBandwidth, Part::CoreBound, Part::MemoryBound] {
            let own = parts.of(part).clone();
            let more = Interval::new(0.0, 0.0, self.unknown.high);
            parts.set(part, own.or_more(more, Source::Isolated, &Reason::NoBoundFound));
        }
        let left = parts.of(Part::Unexplained).clone();
        let more = Interval::new(self.unknown.value, 0.0, self.unknown.high);
        let share = left.interval().plus_alike(more).clamped(0.0, 1.0);
        let is_most = self.unknown.value > left.value;
        let reason = if is_most { Some(Reason::NoBoundFound) } else { left.reason };
        parts.set(Part::Unexplained, Share::known(share, Source::Residual).because(reason));
    }
}

#[cfg(test)]
#[path = "divide_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "unknown_tests.rs"]
mod unknown_tests;
