//! Loads for which a prefetch cannot help.

use super::cost::Sampled;
use super::probed::Probed;
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

/// Why no prefetch is advised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// None can help.
    NoUse(String),
    /// Too little is known to decide.
    Undecided(String),
    /// The same, as its code is not known.
    NoCode,
}

impl Refusal {
    /// The reason in words.
    pub fn why(&self) -> &str {
        match self {
            Self::NoUse(why) | Self::Undecided(why) => why,
            Self::NoCode => "its code is not known",
        }
    }
}

/// Why a prefetch of this load is not advised, whatever it costs. `trips` are those of the innermost loop.
pub(super) fn refusal(
    access: Option<&Access>,
    sampled: Option<&Sampled>,
    probed: Option<&Probed>,
    trips: TripCount,
) -> Option<Refusal> {
    use Refusal::{NoUse, Undecided};
    let Some(access) = access else {
        return Some(Refusal::NoCode);
    };
    let Some(level) = access.innermost() else {
        return Some(NoUse("no loop of its function contains it".to_owned()));
    };
    if let Some(why) = &level.unknown {
        return Some(Undecided(format!("how its address is computed is not known: {why}")));
    }
    if level.class == Class::Irregular {
        return Some(Undecided("how its address is computed is not known".to_owned()));
    }
    if let Some(why) = by_class(&level.class).or_else(|| by_copy(level)) {
        return Some(NoUse(why));
    }
    if let Some(of) = level.after_chase {
        return Some(NoUse(format!(
            "its address is where {of:#x} chases to, in a loop within its own: to know a later one, that loop has to run \
             ahead; several of them interleaved would overlap the misses"
        )));
    }
    if let Some(why) = probed.and_then(|own| own.disagreement(&level.class)) {
        return Some(Undecided(why));
    }
    if let Some(untimed) = probed.filter(|own| own.executions == 0) {
        return Some(Undecided(untimed.no_latency()));
    }
    let timed = probed.map(Probed::sampled);
    let sampled = timed.as_ref().or(sampled);
    let Some(sampled) = sampled.filter(|sampled| !sampled.latencies.is_empty()) else {
        return Some(Undecided("no sample has its latency".to_owned()));
    };
    if sampled.samples < LEAST_SAMPLES {
        let n = sampled.samples;
        return Some(Undecided(format!("too few samples ({n}) to know its latency")));
    }
    let hits = sampled.hits();
    if is_stride(&level.class) && hits >= HITS && !misses_at_first(access, probed, trips) {
        return Some(NoUse(format!("a stride that already hits: {:.0} % in L1", 100.0 * hits)));
    }
    probed.and_then(Probed::hits).map(NoUse)
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
pub(super) fn by_copy(level: &Level) -> Option<String> {
    if level.class.ahead() != Ahead::ByCopy {
        return None;
    }
    let needs = "its address needs all iterations before: to know a later one, a second copy of that computation, with a \
                 state of its own, has to run ahead";
    if level.has_loops {
        return Some(format!("{needs}, and loops within the loop are part of it"));
    }
    let length = level.slice.len();
    (length > CHEAP).then(|| {
        format!("{needs}, which takes {length} instructions an iteration, more than {CHEAP}")
    })
}

fn by_class(class: &Class<u64>) -> Option<String> {
    Some(match class {
        Class::Constant => "its address is always the same".to_owned(),
        Class::Chase { .. } => "a pointer chase: its next address is what it loads".to_owned(),
        Class::OffsetOfChase { of, .. } => {
            format!("an offset of the pointer that {of:#x} chases: known no earlier than that")
        }
        Class::IndirectDelta { of } => {
            format!("its address is a sum of all that {of:#x} has loaded before")
        }
        Class::Indirect { of, inner, .. } if !inner.is_computable_ahead() => {
            format!("its index comes from {of:#x}, whose own next address is not known ahead")
        }
        Class::Complex { ahead: Ahead::No } => {
            "its address needs values that are loaded just before, one after the other".to_owned()
        }
        Class::Stride(_)
        | Class::UnknownStride
        | Class::Indirect { .. }
        | Class::Complex { .. }
        | Class::Irregular => return None,
    })
}
