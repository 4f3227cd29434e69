//! The remainder of the known shares → Memory Bound, Core Bound and Fetch Latency, as far as each can account for it.

use crate::evidence::{Evidence, Interval, Reason};
use crate::part::Part;
use crate::parts::Parts;
use crate::share::{Share, Source};

/// A remainder below this is within the error of the model for loops without any.
pub(crate) const LEAST: f64 = 0.05;
/// Relative error of latencies that can account for the remainder but may overlap. Chosen before programs of known
/// behaviour were run; theirs are within a sixth (docs/results/accuracy.md).
const OVERLAPPING_ERROR: f64 = 0.25;
/// [`OVERLAPPING_ERROR`] for a load that is the loop-carried dependency.
const CARRIED_ERROR: f64 = 0.1;
/// Relative error of fenced latencies against those in the program.
pub(crate) const LATENCY_ERROR: f64 = 0.3;
/// Slots a cycle of the widest of current cores (Zen 5, Lion Cove): code that was not measured in isolation takes at
/// most its slots one after the other, beside its longest paths.
const ONE_BY_ONE: f64 = 8.0;

/// The remainder of the known shares, and the most that each cause can take, as shares of the time.
#[derive(Default)]
pub(crate) struct Rest {
    rest: Interval,
    slack: f64,
    /// Latencies of loads; where it is not known what the code takes in isolation, of those that do not overlap, or as far
    /// as nothing else can take the time.
    memory: f64,
    /// All of them.
    every_load: f64,
    carried: f64,
    dependencies: f64,
    /// The part of these in code of which something else is not known.
    doubtful: f64,
    /// The most that divisions can take whose values are not the program's.
    values: f64,
    /// The most that loads can take of which nothing was measured.
    loads: Open,
    fetch: f64,
    /// With that of code that was not measured in isolation, and translation of addresses.
    every_fetch: f64,
    /// The most that mispredictions can take of which the number or the cost is not known.
    mispredicted: Open,
    /// The most that code can take in isolation of which that is not known, beyond retiring.
    alone: Open,
}

/// The most that something can take which is not known, with the reason of the piece in which it can take most.
#[derive(Default)]
struct Open {
    most: f64,
    largest: f64,
    reason: Option<Reason>,
}

impl Open {
    fn add(&mut self, most: f64, reason: Option<Reason>) {
        self.most += most;
        if most > self.largest {
            (self.largest, self.reason) = (most, reason);
        }
    }
}

impl Rest {
    /// From pieces that together take `time` cycles; `slack`: the relative error of cycles of their executions as shares of it.
    pub fn of(all: &[Evidence], rest: Interval, (time, slack): (f64, f64)) -> Self {
        let mut sum = Self { rest, slack, ..Self::default() };
        for one in all {
            let is_alone = one.isolated.is_ok();
            if let Ok(loads) = &one.loads {
                // What the code can take in isolation at most leaves the rest to its loads.
                let left = one.cycles.value - one.known() - unmeasured(one);
                let most = match is_alone {
                    true => loads.at_most.high,
                    // Latencies are up to that much longer.
                    false => {
                        let left = left / (1.0 + LATENCY_ERROR);
                        loads.carried.high.max(loads.at_most.high.min(left))
                    }
                };
                sum.memory += most / time;
                sum.every_load += loads.at_most.high / time;
                sum.carried += loads.carried.value / time;
            }
            sum.fetch += if is_alone { one.fetch / time } else { 0.0 };
            sum.every_fetch += (one.fetch + one.translation) / time;
            if let (Ok(found), true) = (&one.isolated, one.other_values) {
                sum.values += (one.cycles.value - found.cycles.value).max(0.0) / time;
            }
            let waits = dependencies(one) / time;
            sum.dependencies += waits;
            sum.doubtful += if is_alone { 0.0 } else { waits };
            let wrong = one.mispredicted.unknown.as_ref();
            let why = wrong.map(|(_, why)| Reason::Mispredictions(why.clone().into()));
            sum.mispredicted.add(one.mispredicted.most() / time, why);
            let alone = one.isolated.as_ref().err();
            let why = alone.map(|why| Reason::NotIsolated(why.clone().into()));
            sum.alone.add(unmeasured(one) / time, why);
            let (unknown, why) = unknown_loads(one);
            sum.loads.add(unknown / time, why);
        }
        sum.alone.most = sum.alone.most.min(rest.high);
        sum
    }

    /// The most that unknown mispredictions can take.
    pub fn mispredicted(&self) -> f64 {
        self.mispredicted.most.min(self.rest.high)
    }

    /// How much that is more than what is left.
    pub fn excess(&self) -> f64 {
        (self.mispredicted() - self.rest.value).max(0.0)
    }

    /// The most that may be of no wait, as it is not known.
    pub fn open(&self) -> f64 {
        self.mispredicted() + self.alone.most
    }

    /// Below this nothing is attributed.
    fn least(&self) -> f64 {
        LEAST.max(self.rest.below())
    }

    /// The most that is certain of no part, as what is not known could take it.
    fn unknown(&self) -> f64 {
        match self.open() {
            all if all > 0.0 => all + self.least(),
            _ => 0.0,
        }
    }

    /// The shares of waiting for loads, of waiting for other instructions, and of fetching.
    fn apportion(&self) -> [f64; 3] {
        let rest = self.rest.value;
        if rest < self.least() {
            return [0.0; 3];
        }
        let memory = self.latencies().min(rest);
        let core = self.dependencies.min(rest);
        let fetch = self.fetch.min(rest);
        // A share that the other cannot explain is certain; one that both could is not distributed.
        let waits = (memory + core).min(rest);
        let every_wait = self.every_load * (1.0 + LATENCY_ERROR) + core;
        let left = rest - self.mispredicted();
        let of_waits = waits.min(left - self.every_fetch).max(0.0);
        let of_fetch = fetch.min(left - every_wait).max(0.0);
        // Loads and other instructions are on the same paths: their latencies divide what is waited.
        let of_core = match self.memory + self.dependencies {
            all if all > 0.0 => {
                (of_waits * self.dependencies / all).max(of_waits - memory).min(core)
            }
            _ => 0.0,
        };
        [of_waits - of_core, of_core, of_fetch]
    }

    /// How much more waits would certainly have if more were left.
    fn absorbs(&self, waits: f64) -> f64 {
        let others = self.mispredicted() + self.every_fetch;
        match self.rest.value < self.least() || (waits <= 0.0 && others > 0.0) {
            true => 0.0,
            false => (self.latencies() + self.dependencies - waits).max(0.0),
        }
    }

    fn latencies(&self) -> f64 {
        self.memory * (1.0 + LATENCY_ERROR)
    }

    /// Why time is unexplained: what could take most of it, beside what `waits` and `fetch` have.
    fn why(&self, left: f64, waits: f64, fetch: f64) -> Option<Reason> {
        if left < LEAST {
            return None;
        }
        let all_waits = self.every_load * (1.0 + LATENCY_ERROR) + self.dependencies;
        let either = (all_waits - waits).min(self.every_fetch - fetch);
        let unknown = [&self.alone, &self.mispredicted, &self.loads];
        let unknown = unknown.map(|one| (one.most, one.reason.clone()));
        let others =
            [(self.values, Some(Reason::DivisionValues)), (either, Some(Reason::FetchOrWait))];
        let could = unknown.into_iter().chain(others).map(|(most, why)| (most.min(left), why));
        let (most, why) =
            could.fold((0.0, None), |one, other| if other.0 > one.0 { other } else { one });
        match why {
            Some(why) if most >= LEAST => Some(why),
            _ if self.rest.value < self.least() => None,
            _ => Some(Reason::NoCandidate),
        }
    }
}

impl Evidence {
    /// Cycles that retire, or are lost to mispredictions or contention.
    fn known(&self) -> f64 {
        let retired = self.retiring.as_ref().map_or(0.0, |cycles| cycles.value);
        let contended = self.contention.map_or(0.0, |of| of.cycles.value);
        retired + self.mispredicted.cycles.value + self.mispredicted.most() + contended
    }
}

/// The most cycles beyond retiring that a piece takes in isolation, if that is not known.
fn unmeasured(evidence: &Evidence) -> f64 {
    match (&evidence.isolated, &evidence.retiring) {
        (Err(_), Ok(retired)) => {
            let most = evidence.latency + ONE_BY_ONE * retired.high;
            (most.min(evidence.cycles.high) - retired.value).max(0.0)
        }
        _ => 0.0,
    }
}

/// Cycles that loads may take of which nothing was measured, and why not.
fn unknown_loads(evidence: &Evidence) -> (f64, Option<Reason>) {
    let known = match (&evidence.isolated, &evidence.retiring) {
        (Ok(found), _) => found.cycles.value,
        (_, Ok(retired)) => retired.value,
        _ => 0.0,
    };
    let rest = (evidence.cycles.value - known).max(0.0);
    match &evidence.loads {
        Ok(loads) if loads.unknown > 0.0 => (loads.unknown.min(rest), Some(Reason::SomeLoads)),
        Ok(_) => (0.0, None),
        Err(why) => (rest, Some(Reason::Loads(why.clone().into()))),
    }
}

/// Cycles that its instructions may wait for each other beside those in isolation.
fn dependencies(evidence: &Evidence) -> f64 {
    let retired = evidence.retiring.as_ref().map_or(0.0, |cycles| cycles.value);
    match &evidence.isolated {
        // In isolation they are as in the program; and executions of one that was not measured overlap.
        _ if evidence.is_loop => 0.0,
        Ok(found) => (evidence.latency - found.cycles.value.max(retired)).max(0.0),
        Err(_) => (evidence.latency - retired).max(0.0),
    }
}

/// What causes take of the remainder, as shares of the time.
pub(crate) struct Attributed {
    pub memory: Interval,
    pub core: Interval,
    /// The most that loads can take of which nothing was measured.
    pub unknown_loads: f64,
    /// By how much more the remainder may be.
    pub above: f64,
    /// How much of what waits have may have no cause that is known, and how much may be fetching.
    pub doubt: f64,
    /// How much more waits could have.
    pub absorbs: f64,
    pub may_be_fetch: f64,
}

/// Enters what the causes account for, and what is unexplained.
pub(crate) fn attribute(of: &Rest, parts: &mut Parts) -> Attributed {
    let rest = of.rest;
    let [memory, core, fetch] = of.apportion();
    let waits = memory + core;
    let left = rest.value - waits - fetch;
    let every_load = (of.every_load * (1.0 + LATENCY_ERROR)).min(rest.value);
    let every_wait = of.dependencies.min(rest.value);
    let every_fetch = of.every_fetch.min(rest.value);
    let (values, loads) = (of.values.min(rest.value), of.loads.most.min(rest.value));
    let is_carried = of.carried * (1.0 + LATENCY_ERROR) >= memory;
    let model = |part| match part {
        Part::MemoryBound if is_carried => CARRIED_ERROR,
        _ => OVERLAPPING_ERROR,
    };
    // As little as the model's error allows, or as is certain where something else could be of the rest.
    let error = |part, value: f64, others: f64| {
        let all =
            Interval::relative(value, model(part)).plus(Interval::new(0.0, -rest.below(), 0.0));
        let certain = value - others - of.unknown();
        Interval::new(value, all.low.min(certain).max(0.0), value)
    };
    let other_loads = every_load - of.latencies().min(rest.value);
    let own_memory = error(Part::MemoryBound, memory, every_wait - core + values);
    let own_core = error(
        Part::CoreBound,
        core,
        of.latencies().min(rest.value) - memory + other_loads + loads + of.doubtful,
    );
    let own_fetch = error(Part::FetchLatency, fetch, values + loads + other_loads);
    let others = core + fetch;
    let doubt = memory * model(Part::MemoryBound) + others * OVERLAPPING_ERROR;
    // What else may be of no cause: bounds, not errors.
    let bound = others.min(loads).max((waits + fetch).min(of.alone.most));
    let could = every_load + every_wait + every_fetch + values + loads;
    let low = (rest.value - could - of.mispredicted() - of.alone.most).min(left - rest.below());
    let mut high = left + doubt.hypot(rest.above()).max(bound + rest.above());
    if of.unknown() > 0.0 {
        high = high.max(rest.high.min(of.unknown()));
    }
    let share = Interval::new(left, low, high).clamped(0.0, 1.0);
    let reason = of.why(left, waits, fetch);
    let why = reason.clone().unwrap_or(Reason::NotSeparated);
    parts.set(Part::Unexplained, Share::known(share, Source::Residual).because(reason));
    // A cause stays possible even if the others seem to leave nothing: they have errors.
    let may = |most: f64| (most * (1.0 + of.slack)).min(rest.high);
    // Of what is not known, all that is left.
    let open = |most: f64| most + if most > 0.0 { rest.above() } else { 0.0 };
    for (part, own, could) in [
        (
            Part::MemoryBound,
            own_memory,
            may((of.every_load * (1.0 + LATENCY_ERROR))
                .max(memory + open(of.loads.most))
                .max(of.alone.most)),
        ),
        (
            Part::CoreBound,
            own_core,
            may(of.dependencies.max(core + open(of.values)).max(of.alone.most)),
        ),
        (Part::FetchLatency, own_fetch, may(of.every_fetch)),
        (Part::FetchBandwidth, Interval::default(), may(of.alone.most)),
        (Part::Retiring, Interval::default(), may(of.alone.most)),
    ] {
        if own.value > 0.0 || could > 0.0 {
            let more = Interval::new(own.value, own.low, could);
            let own = parts.of(part).clone();
            parts.set(part, own.or_more(more, source(part), &why));
        }
    }
    Attributed {
        memory: own_memory,
        core: own_core,
        unknown_loads: loads,
        above: rest.above(),
        doubt: memory * model(Part::MemoryBound) + core * OVERLAPPING_ERROR,
        absorbs: of.absorbs(waits),
        may_be_fetch: (every_fetch - fetch).min(waits),
    }
}

/// Where what is left for a part comes from.
fn source(part: Part) -> Source {
    match part {
        Part::CoreBound => Source::Modelled,
        _ => Source::Inferred,
    }
}

impl Share {
    /// With more that may be there beside it, from `source`; `why` it is not known, if that is all there is.
    pub(crate) fn or_more(self, more: Interval, source: Source, why: &Reason) -> Self {
        let share = self.interval().plus_alike(more).clamped(0.0, 1.0);
        if share.value <= 0.0 && share.high >= LEAST {
            return Self::unknown(share.high, why.clone());
        }
        let both = [(self.source, self.value), (source, more.value)];
        let named = Source::of_sum(both.into_iter()).unwrap_or(source);
        let reason = (source == Source::Modelled && more.value > 0.0)
            .then_some(Reason::Dependencies(more.value));
        let reason = self.reason.or(reason);
        Self::known(share, named).because(reason)
    }
}
