//! Loads for which a prefetch cannot help.

use super::cost::Sampled;
use super::probed::Probed;
use super::refusal::Refusal;
use super::trips::TripCount;
use crate::access::{Access, Level};
use crate::class::{Ahead, Class};

/// A stride of which at least this share of the samples hits L1 needs no prefetch.
const HITS: f64 = 0.8;
/// Misses of one execution of a loop by a load that misses where the loop begins, at least; one is expected.
const AT_FIRST: f64 = 0.5;
/// With fewer samples the latency is not known.
const LEAST_SAMPLES: u64 = 5;
/// Instructions of a slice that may run a second time in each iteration: beside a miss of hundreds of cycles they take
/// little (a generator of random numbers has 6 to 12).
const CHEAP: usize = 24;

/// Why a prefetch of this load is not advised, whatever it costs. `trips` are those of the innermost loop.
pub(super) fn refusal(
    access: Option<&Access>,
    sampled: Option<&Sampled>,
    probed: Option<&Probed>,
    trips: TripCount,
) -> Option<Refusal> {
    let Some(access) = access else { return Some(Refusal::NoCode) };
    let Some(level) = access.innermost() else { return Some(Refusal::NoLoop) };
    if let Some(why) = level.unknown {
        return Some(Refusal::NoPath(why));
    }
    if level.class == Class::Irregular {
        return Some(Refusal::Irregular);
    }
    let by_code = by_class(&level.class).or_else(|| by_copy(level));
    let by_code = by_code.or_else(|| level.after_chase.map(Refusal::AfterChase));
    if let Some(why) = by_code.or_else(|| probed?.disagreement(&level.class)) {
        return Some(why);
    }
    if let Some(untimed) = probed.filter(|own| own.executions == 0) {
        return Some(Refusal::Untimed(untimed.untimed.clone()));
    }
    let timed = probed.map(Probed::sampled);
    let sampled = timed.as_ref().or(sampled);
    let Some(sampled) = sampled.filter(|sampled| !sampled.latencies.is_empty()) else {
        return Some(Refusal::NoLatency);
    };
    if sampled.samples < LEAST_SAMPLES {
        return Some(Refusal::FewSamples(sampled.samples));
    }
    let hits = sampled.hits();
    if is_stride(&level.class) && hits >= HITS && !misses_at_first(access, probed, trips) {
        return Some(Refusal::StrideHits(hits));
    }
    probed.and_then(Probed::hits).map(Refusal::Hits)
}

fn is_stride(class: &Class<u64>) -> bool {
    matches!(class, Class::Constant | Class::Stride(_) | Class::UnknownStride)
}

/// Whether a load is a stride that hits but for the first iteration of its loop: executions of the loop begin at addresses
/// that are no stride, but can be known ahead, as of records that a list of pointers leads to.
pub(super) fn misses_at_first(access: &Access, probed: Option<&Probed>, trips: TripCount) -> bool {
    let [inner, outer, ..] = &access.levels[..] else { return false };
    let jumps = !is_stride(&outer.class) && outer.class.is_computable_ahead();
    let misses = probed.and_then(|own| own.misses_of_an_execution(trips));
    is_stride(&inner.class)
        && jumps
        && probed.is_some_and(|own| own.sampled().hits() >= HITS)
        && misses.is_some_and(|misses| misses >= AT_FIRST)
}

/// Why an address that its own earlier values are needed for is not computed ahead.
pub(super) fn by_copy(level: &Level) -> Option<Refusal> {
    let length = level.slice.len();
    match level.class.ahead() {
        Ahead::ByCopy if level.has_loops => Some(Refusal::CopyOfLoops),
        Ahead::ByCopy if length > CHEAP => Some(Refusal::LongCopy { length, most: CHEAP }),
        _ => None,
    }
}

fn by_class(class: &Class<u64>) -> Option<Refusal> {
    Some(match class {
        Class::Constant => Refusal::Constant,
        Class::Chase { .. } => Refusal::Chase,
        Class::OffsetOfChase { of, .. } => Refusal::OffsetOfChase(*of),
        Class::IndirectDelta { of } => Refusal::Sum(*of),
        Class::Indirect { of, inner, .. } if !inner.is_computable_ahead() => Refusal::Index(*of),
        Class::Complex { ahead: Ahead::No } => Refusal::Loaded,
        Class::Stride(_)
        | Class::UnknownStride
        | Class::Indirect { .. }
        | Class::Complex { .. }
        | Class::Irregular => return None,
    })
}
