//! What the parts consist of, as far as the evidence tells them apart. Where it does not, a child is left out; it may
//! then be anything up to its parent.

use crate::evidence::{BoundBy, Divisions, Evidence, Interval};
use crate::part::Part;
use crate::parts::Parts;
use crate::rest::{Attributed, LATENCY_ERROR, LEAST};
use crate::share::{Share, Source};

/// The levels of [`Loads::levels`](crate::Loads), in its order.
const LEVELS: [Part; 4] = [Part::L2Bound, Part::L3Bound, Part::DramBound, Part::StoreBound];

/// Share of the latency of divisions in a chain with other instructions in which the divider is busy, at least: it is
/// ready for the next one before its result is.
const BUSY: f64 = 0.5;

/// What is known of pieces that are divided as one.
pub(crate) struct Within<'a> {
    pub all: &'a [Evidence],
    /// Their time in cycles.
    pub time: f64,
    /// What loads that wait for L1 or for stores take in isolation, and what is Core Bound there.
    pub loads: Interval,
    pub core: Interval,
    /// What causes take of the remainder.
    pub attributed: Attributed,
}

impl Within<'_> {
    /// Enters the children of the parts that have a value.
    pub fn enter(&self, parts: &mut Parts) {
        let has_value = |parts: &Parts, part| {
            let share: &Share = parts.of(part);
            share.high > 0.0 && share.has_value()
        };
        if has_value(parts, Part::BadSpeculation) {
            parts.set(Part::BranchMispredicts, parts.bad_speculation.clone().because(None));
        }
        if has_value(parts, Part::FetchLatency) {
            self.fetch(parts);
        }
        if has_value(parts, Part::CoreBound) {
            self.divider(parts);
        }
        if has_value(parts, Part::MemoryBound) {
            self.first(parts);
            self.levels(parts);
        }
    }

    /// Whether something else than what is known may bound pieces in isolation.
    fn is_open(&self, one: &Evidence) -> bool {
        one.isolated.as_ref().map_or(true, |found| found.bound == BoundBy::Unknown)
    }

    /// Translation has no value of its own: it may be of what caches have.
    fn fetch(&self, parts: &mut Parts) {
        let translation: f64 = self.all.iter().map(|one| one.translation / self.time).sum();
        let whole = parts.fetch_latency.interval();
        let caches = Interval { low: (whole.low - translation).max(0.0), ..whole };
        parts.set(Part::ICacheMisses, Share::known(caches, Source::Inferred));
        if translation <= 0.0 {
            parts.set(Part::ItlbMisses, Share::default());
        }
    }

    fn divider(&self, parts: &mut Parts) {
        let whole = parts.core_bound.clone();
        let divides = |one: &&Evidence| one.divisions != Divisions::Absent;
        if !self.all.iter().any(|one| divides(&one)) {
            parts.set(Part::Divider, Share::default());
            parts.set(Part::PortsUtilization, whole.because(None));
            return;
        }
        let (divider, others) = self.ratio();
        let mut dividing = self.all.iter().filter(divides);
        let is_open = dividing.any(|one| self.is_open(one) || one.other_values || !one.is_loop);
        let own = Interval::new(
            divider.value * self.core.value,
            divider.low * self.core.low,
            divider.high * self.core.high,
        );
        let high = if is_open { whole.high } else { own.high.min(whole.high) };
        // Paths outside loops are not known apart.
        let waits = if is_open { 0.0 } else { self.attributed.core.value };
        let value = others * self.core.value + waits;
        let ports = Interval::new(value, (whole.low - high).max(0.0), whole.high - own.low);
        enter(parts, Part::Divider, Interval { high, ..own }, Source::Isolated);
        enter(parts, Part::PortsUtilization, ports, whole.source);
    }

    /// The shares of what is Core Bound in isolation that divisions take, and other instructions.
    fn ratio(&self) -> (Interval, f64) {
        let (mut sum, mut divider, mut others) = (0.0, Interval::default(), 0.0);
        for one in self.all {
            let (Ok(found), Ok(retired)) = (&one.isolated, &one.retiring) else { continue };
            let excess = (found.cycles.value - retired.value).max(0.0) * (1.0 - found.loads);
            if found.bound != BoundBy::Core {
                continue;
            }
            let share = match one.divisions {
                Divisions::Absent => Interval::default(),
                Divisions::Take(share) if share < 1.0 => Interval::new(share, BUSY * share, share),
                Divisions::Take(share) => Interval::exact(share),
                Divisions::AtLeast(share) => Interval::new(share, BUSY * share, 1.0),
                Divisions::Unknown => Interval::new(0.0, 0.0, 1.0),
            };
            sum += excess;
            divider = divider.plus_alike(share.times(excess));
            let is_known = one.divisions != Divisions::Unknown;
            others += if is_known { (1.0 - share.value) * excess } else { 0.0 };
        }
        match sum > 0.0 {
            true => (divider.times(1.0 / sum), others / sum),
            false => (divider, others),
        }
    }

    /// L1 Bound; code that was not measured in isolation may have more of it.
    fn first(&self, parts: &mut Parts) {
        let whole = parts.memory_bound.high;
        let is_open = self.all.iter().any(|one| self.is_open(one));
        let high = if is_open { whole } else { self.loads.high.min(whole) };
        enter(parts, Part::L1Bound, Interval { high, ..self.loads }, Source::Isolated);
    }

    /// What loads and stores take beyond L1, by their levels: no more than their latencies, and no less than those of
    /// the others leave.
    fn levels(&self, parts: &mut Parts) {
        let known = || self.all.iter().filter_map(|one| one.loads.as_ref().ok());
        let all: f64 = known().map(|loads| loads.at_most.value / self.time).sum();
        let inferred = self.attributed.memory;
        let level = |number: usize| {
            let own = known().map(|loads| loads.levels[number].times(1.0 / self.time));
            own.fold(Interval::default(), Interval::plus_alike)
        };
        let most = |number: usize| level(number).high * (1.0 + LATENCY_ERROR);
        let unknown = self.attributed.unknown_loads;
        let left = parts.memory_bound.high - self.loads.low;
        for (number, part) in LEVELS.into_iter().enumerate() {
            let others: f64 = (0..LEVELS.len()).filter(|other| *other != number).map(most).sum();
            let value = if all > 0.0 { inferred.value * level(number).value / all } else { 0.0 };
            let low = (inferred.low - others - unknown).max(0.0);
            let high = match most(number) + unknown {
                none if none <= 0.0 => 0.0,
                most => (most + self.attributed.above).min(left),
            };
            enter(parts, part, Interval::new(value.min(high), low, high), Source::Inferred);
        }
    }
}

/// Enters a child: one without a value is left out, unless nothing of it is there.
fn enter(parts: &mut Parts, part: Part, share: Interval, source: Source) {
    if share.high <= 0.0 {
        parts.set(part, Share::default());
    } else if share.value > 0.0 || share.high < LEAST {
        let share = Interval::new(share.value, share.low, share.high);
        parts.set(part, Share::known(share.clamped(0.0, 1.0), source));
    }
}

#[cfg(test)]
#[path = "within_tests.rs"]
pub(crate) mod tests;
