//! What the known shares leave over → Memory Bound, Core Bound and Fetch Latency, as far as each can account for it.

use crate::evidence::Evidence;
use crate::interval::Interval;
use crate::parts::{Part, Parts, Share, Source};

/// A rest below this is within what the model can tell of loops without any.
pub const LEAST: f64 = 0.05;
/// How well the rest is known to be of latencies that can account for it but may overlap. Chosen before programs of
/// known behaviour were run; theirs are within a sixth (docs/results/estimate.md).
const OVERLAPPING: f64 = 0.25;
/// The same of a load that is the loop-carried dependency.
const CARRIED: f64 = 0.1;
/// Fenced latencies exceed those in the program, or fall short of them, by up to this much.
const LATENCY: f64 = 0.3;
/// Why more is not known of divisions.
const VALUES: &str = "divisions take as long as their values ask for, and those of the program are not known: they could account for it";

/// The same of loads.
const LOADS: &str = "some of its loads were not measured, such as those that no probe fits into: they could account for it";

/// What the known shares leave, and the most that each cause can take, as shares of the time.
pub(crate) struct Rest {
    rest: Interval,
    memory: f64,
    carried: f64,
    dependencies: f64,
    /// Of that, in code of which something else is not known.
    doubtful: f64,
    /// The most that divisions can take whose values are not the program's.
    values: f64,
    /// The most that loads can take of which nothing was measured.
    loads: f64,
    fetch: f64,
    /// Why more is not known.
    reason: Option<String>,
}

impl Rest {
    /// Of pieces that together take so many cycles.
    pub fn of(all: &[Evidence], rest: Interval, time: f64) -> Self {
        let mut sum = Self {
            rest,
            memory: 0.0,
            carried: 0.0,
            dependencies: 0.0,
            doubtful: 0.0,
            values: 0.0,
            loads: 0.0,
            fetch: 0.0,
            reason: None,
        };
        // The reason of the piece that has most time.
        let mut longest = 0.0;
        for one in all {
            let missing = missing(one);
            if let Ok(loads) = &one.loads {
                let most = if missing.is_none() { loads.at_most } else { loads.carried };
                sum.memory += most.high / time;
                sum.carried += loads.carried.value / time;
            }
            if missing.is_none() {
                sum.fetch += one.fetch / time;
            }
            if let (Ok(found), true) = (&one.isolated, one.other_values) {
                sum.values += (one.cycles.value - found.cycles.value).max(0.0) / time;
            }
            let waits = dependencies(one) / time;
            sum.dependencies += waits;
            sum.doubtful += if missing.is_some() { waits } else { 0.0 };
            let (unknown, loads) = unknown_loads(one);
            sum.loads += unknown / time;
            let is_much = unknown > LEAST * one.cycles.value;
            let reason = missing.or_else(|| loads.filter(|_| is_much));
            if let (Some(reason), true) = (reason, one.cycles.value > longest) {
                (sum.reason, longest) = (Some(reason), one.cycles.value);
            }
        }
        sum
    }
}

/// Without a piece in isolation, or its mispredictions, only what does not overlap is known to be memory's.
fn missing(evidence: &Evidence) -> Option<String> {
    let alone = evidence.isolated.as_ref().err();
    let alone = alone.map(|why| format!("not measured in isolation: {why}"));
    let predicted = evidence.mispredicted.as_ref().err();
    alone.or_else(|| predicted.map(|why| format!("its mispredictions are not known: {why}")))
}

/// Cycles that loads may take of which nothing was measured, and why not.
fn unknown_loads(evidence: &Evidence) -> (f64, Option<String>) {
    let known = match (&evidence.isolated, &evidence.retiring) {
        (Ok(found), _) => found.cycles.value,
        (_, Ok(retired)) => retired.value,
        _ => 0.0,
    };
    let rest = (evidence.cycles.value - known).max(0.0);
    match &evidence.loads {
        Ok(loads) if loads.unknown > 0.0 => (loads.unknown.min(rest), Some(LOADS.to_owned())),
        Ok(_) => (0.0, None),
        Err(why) => (rest, Some(format!("its loads are not known: {why}"))),
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

/// Enters what the causes account for, and what is unexplained.
pub(crate) fn attribute(of: &Rest, parts: &mut Parts) {
    let rest = of.rest;
    let mut unexplained = |share: Interval, reason: Option<String>| {
        let share = share.clamped(0.0, 1.0);
        parts.set(Part::Unexplained, Share { share, source: Source::Residual, reason });
    };
    if rest.value < LEAST.max(rest.below()) {
        return unexplained(rest, None);
    }
    let memory = (of.memory * (1.0 + LATENCY)).min(rest.value);
    let core = of.dependencies.min(rest.value);
    let (values, loads) = (of.values.min(rest.value), of.loads.min(rest.value));
    let fetch = of.fetch.min(rest.value);
    // What the other cannot explain is certain; what both could is not distributed.
    let waits = (memory + core).min(rest.value);
    let of_waits = waits.min(rest.value - fetch);
    let of_fetch = fetch.min(rest.value - waits);
    // Loads and other instructions are on the same paths: their latencies divide what is waited.
    let of_core = match of.memory + of.dependencies {
        all if all > 0.0 => (of_waits * of.dependencies / all).max(of_waits - memory).min(core),
        _ => 0.0,
    };
    let of_memory = of_waits - of_core;
    let left = rest.value - of_waits - of_fetch;
    let is_carried = of.carried * (1.0 + LATENCY) >= of_memory;
    let model = |part| match part {
        Part::MemoryBound if is_carried => CARRIED,
        _ => OVERLAPPING,
    };
    // As little as the model's error allows, or as is certain where other latencies could be of the rest.
    let error = |part, value: f64, certain: f64| {
        let all =
            Interval::relative(value, model(part)).plus(Interval::new(0.0, -rest.below(), 0.0));
        Interval::new(value, all.low.min(certain).max(0.0), value)
    };
    let reason = match &of.reason {
        _ if left < LEAST => None,
        Some(why) => Some(why.clone()),
        None if values >= LEAST => Some(VALUES.to_owned()),
        None if fetch > 0.0 && waits > 0.0 => {
            Some("fetching code, or waiting for loads or results: either could take it".to_owned())
        }
        None => {
            Some("neither loads, nor stores, nor dependencies, nor code account for it".to_owned())
        }
    };
    let own_memory = error(Part::MemoryBound, of_memory, of_waits - core - values);
    let own_core = error(Part::CoreBound, of_core, of_waits - memory - loads - of.doubtful);
    let own_fetch = error(Part::FetchLatency, of_fetch, of_fetch - values - loads);
    let doubt = of_memory * model(Part::MemoryBound) + (of_core + of_fetch) * OVERLAPPING;
    unexplained(
        Interval::new(left, left - rest.below().max(values + loads), left + doubt + rest.above()),
        reason,
    );
    for (part, own, could) in [
        (Part::MemoryBound, own_memory, memory.max(own_memory.value + loads)),
        (Part::CoreBound, own_core, core.max(own_core.value + values)),
        (Part::FetchLatency, own_fetch, fetch),
    ] {
        if own.value > 0.0 || could > 0.0 {
            let high = could.min(rest.value).max(own.value) + rest.above();
            let share = Interval::new(own.value, own.low, high.max(own.value));
            add(parts, part, share);
        }
    }
}

/// Adds to a part what is left for it.
fn add(parts: &mut Parts, part: Part, more: Interval) {
    let own = parts.of(part).clone();
    let share = own.share.plus_alike(more).clamped(0.0, 1.0);
    let is_core = part == Part::CoreBound;
    let new = if is_core { Source::Modelled } else { Source::Residual };
    let source = if own.share.value > more.value { own.source } else { new };
    let reason = (is_core && more.value > 0.0).then(|| {
        format!(
            "{:.0} % of the time by the latencies of dependent instructions",
            100.0 * more.value
        )
    });
    parts.set(part, Share { share, source, reason: own.reason.or(reason) });
}
