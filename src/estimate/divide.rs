//! Evidence → parts.
//!
//! In this order, as shares of the sampled time T: retiring R ÷ T; mispredictions B ÷ T; what the code takes in
//! isolation beyond retiring, (I − R) ÷ T, to Fetch Bandwidth or Core Bound by its bound. The rest, 1 − (I + B) ÷ T,
//! goes to Memory Bound as far as latencies of loads, and to Fetch Latency as far as fetching can account for it;
//! what both could explain, and what neither can, stays unexplained.

use crate::evidence::{Bound, Evidence, Isolated};
use crate::interval::Interval;
use crate::parts::{Part, Parts, Share, Source};

/// A rest below this is within what the model can tell of loops without any.
pub const LEAST: f64 = 0.05;
/// How well the rest is known to be of loads that can account for it but may overlap. Chosen before programs of known
/// behaviour were run; theirs are within a sixth (docs/results/estimate.md).
const OVERLAPPING: f64 = 0.25;
/// The same of a load that is the loop-carried dependency.
const CARRIED: f64 = 0.1;
/// A measurement in isolation that is longer than the program's own time by this is of other work.
const SLOWER: f64 = 1.25;
/// Fenced latencies exceed those in the program, or fall short of them, by up to this much.
const LATENCY: f64 = 0.3;

/// Divides the time.
pub fn divide(evidence: &Evidence) -> Parts {
    let time = evidence.cycles;
    if time.value <= 0.0 {
        return Parts::unknown("it has no time".to_owned());
    }
    let retired = match &evidence.retiring {
        Ok(cycles) => *cycles,
        Err(why) => return Parts::unknown(why.clone()),
    };
    let checked = believable(evidence);
    let evidence = checked.as_ref().unwrap_or(evidence);
    let mut known = Known::of(evidence, retired, time);
    known.reconcile();
    let rest = known.rest(time);
    let mut parts = Parts::default();
    let share =
        |share: Interval, source, reason| Share { share: share.clamped(0.0, 1.0), source, reason };
    parts.set(Part::Retiring, share(known.retiring, Source::Counted, None));
    let missing = evidence.mispredicted.as_ref().err().cloned();
    let source = if missing.is_some() { Source::Absent } else { Source::Modelled };
    parts.set(Part::BadSpeculation, share(known.mispredicted, source, missing));
    if let (Some(part), Ok(_)) = (known.part, &evidence.isolated) {
        parts.set(part, share(known.isolated, Source::Isolated, None));
    }
    attribute(evidence, rest, &mut parts);
    if known.part.is_none() {
        let left = parts.of(Part::Unexplained).clone();
        let why = "nothing known bounds it in isolation".to_owned();
        let share = left.share.plus_alike(known.isolated).clamped(0.0, 1.0);
        let reason = if known.isolated.value > left.share.value { Some(why) } else { left.reason };
        parts.set(Part::Unexplained, Share { share, reason, ..left });
    }
    parts
}

/// The evidence without a measurement in isolation that is far longer than the program's own time: it was not of the
/// same work.
fn believable(evidence: &Evidence) -> Option<Evidence> {
    let found = evidence.isolated.as_ref().ok()?;
    let times = found.cycles.low / evidence.cycles.high;
    let why = || format!("it takes {times:.1} times as long there as in the program");
    (times > SLOWER).then(|| Evidence { isolated: Err(why()), ..evidence.clone() })
}

/// The shares that are known in themselves.
struct Known {
    retiring: Interval,
    mispredicted: Interval,
    /// What the code takes in isolation beyond retiring.
    isolated: Interval,
    /// Where that belongs.
    part: Option<Part>,
}

impl Known {
    fn of(evidence: &Evidence, retired: Interval, time: Interval) -> Self {
        let of = |cycles: Interval| cycles.over(time);
        let zero = Interval::default();
        let part = match &evidence.isolated {
            Ok(Isolated { bound: Bound::FrontEnd, .. }) => Some(Part::FetchBandwidth),
            Ok(Isolated { bound: Bound::Unknown, .. }) => None,
            _ => Some(Part::CoreBound),
        };
        let mut retiring = of(retired);
        let mut isolated = match &evidence.isolated {
            Ok(found) => of(found.cycles.minus(retired)).clamped(0.0, f64::INFINITY),
            Err(_) => zero,
        };
        if matches!(evidence.isolated, Ok(Isolated { bound: Bound::IssueWidth, .. })) {
            retiring = retiring.plus(isolated);
            isolated = zero;
        }
        let mispredicted = evidence.mispredicted.as_ref().map_or(zero, |cycles| of(*cycles));
        Self { retiring, mispredicted, isolated, part }
    }

    fn all(&mut self) -> [&mut Interval; 3] {
        [&mut self.retiring, &mut self.mispredicted, &mut self.isolated]
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

    /// What they leave, with the error of the time itself.
    fn rest(&self, time: Interval) -> Interval {
        let known = self.retiring.plus(self.mispredicted).plus(self.isolated);
        let of_time = known.value * time.error() / time.value;
        let rest = Interval::exact(1.0).minus(known);
        let (below, above) = (rest.below().max(of_time), rest.above().max(of_time));
        let value = rest.value.max(0.0);
        Interval::new(value, (value - below).max(0.0), (value + above).min(1.0))
    }
}

/// Gives the rest to loads and code as far as they can account for it.
fn attribute(evidence: &Evidence, rest: Interval, parts: &mut Parts) {
    let time = evidence.cycles.value;
    let mut unexplained = |share: Interval, reason: Option<String>| {
        let share = share.clamped(0.0, 1.0);
        parts.set(Part::Unexplained, Share { share, source: Source::Residual, reason });
    };
    if rest.value < LEAST.max(rest.below()) {
        return unexplained(rest, None);
    }
    // Without it in isolation, or its mispredictions, only what does not overlap is known to be memory's.
    let alone =
        evidence.isolated.as_ref().err().map(|why| format!("not measured in isolation: {why}"));
    let predicted = || {
        evidence
            .mispredicted
            .as_ref()
            .err()
            .map(|why| format!("its mispredictions are not known: {why}"))
    };
    let missing = alone.or_else(predicted);
    let (most, carried) = match &evidence.loads {
        Ok(loads) if missing.is_none() => (loads.at_most.high, loads.carried.value),
        Ok(loads) => (loads.carried.high, loads.carried.value),
        Err(_) => (0.0, 0.0),
    };
    let memory = (most * (1.0 + LATENCY) / time).min(rest.value);
    let fetch = if missing.is_some() { 0.0 } else { (evidence.fetch / time).min(rest.value) };
    // What the other cannot explain is certain; what both could is not distributed.
    let of_memory = memory.min(rest.value - fetch);
    let of_fetch = fetch.min(rest.value - memory);
    let left = rest.value - of_memory - of_fetch;
    let is_carried = carried * (1.0 + LATENCY) >= of_memory * time;
    let model = if is_carried { CARRIED } else { OVERLAPPING };
    let error =
        |value: f64| Interval::relative(value, model).plus(Interval::new(0.0, -rest.below(), 0.0));
    let reason = match (&evidence.loads, &missing) {
        _ if left < LEAST => None,
        (_, Some(why)) => Some(why.clone()),
        (Err(why), _) => Some(format!("its loads are not known: {why}")),
        _ if fetch > 0.0 && memory > 0.0 => {
            Some("fetching code, or loads: either could take it".to_owned())
        }
        _ => Some("neither loads, nor stores, nor code account for it".to_owned()),
    };
    let doubt = error(of_memory).below() + error(of_fetch).below();
    unexplained(Interval::new(left, left - rest.below(), left + doubt), reason);
    for (part, value, could) in
        [(Part::MemoryBound, of_memory, memory), (Part::FetchLatency, of_fetch, fetch)]
    {
        if value > 0.0 || could > 0.0 {
            let own = error(value);
            let high = could.min(rest.value).max(value) + rest.above();
            let share = Interval::new(value, own.low, high.max(value)).clamped(0.0, 1.0);
            parts.set(part, Share { share, source: Source::Residual, reason: None });
        }
    }
}

#[cfg(test)]
#[path = "divide_tests.rs"]
mod tests;
