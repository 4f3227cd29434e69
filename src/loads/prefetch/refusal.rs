//! Loads for which a prefetch cannot help.

use super::cost::Sampled;
use super::probed::Probed;
use crate::access::Access;
use crate::class::Class;

/// A stride of which at least this share of the samples hits L1 needs no prefetch.
const HITS: f64 = 0.8;
/// Of a load without code.
pub const NO_CODE: &str = "its code is not known";
/// With fewer samples the latency is not known.
const LEAST_SAMPLES: u64 = 5;

/// Why a prefetch of this load is not advised, whatever it costs.
pub(super) fn refusal(
    access: Option<&Access>,
    sampled: Option<&Sampled>,
    probed: Option<&Probed>,
) -> Option<String> {
    let Some(access) = access else {
        return Some(NO_CODE.to_owned());
    };
    let Some(level) = access.innermost() else {
        return Some("it is in no loop".to_owned());
    };
    if let Some(why) = &level.unknown {
        return Some(format!("how its address is computed is not known: {why}"));
    }
    if let Some(why) = by_class(&level.class) {
        return Some(why);
    }
    if let Some(of) = level.after_chase {
        return Some(format!(
            "its address is where {of:#x} chases to, in a loop within its own: to know a later one, that loop has to run \
             ahead; several of them interleaved would overlap the misses"
        ));
    }
    if let Some(why) = probed.and_then(|own| own.disagreement(&level.class)) {
        return Some(why);
    }
    if let Some(untimed) = probed.filter(|own| own.executions == 0) {
        return untimed.refusal();
    }
    let timed = probed.map(Probed::sampled);
    let sampled = timed.as_ref().or(sampled);
    let Some(sampled) = sampled.filter(|sampled| !sampled.latencies.is_empty()) else {
        return Some("no sample has its latency".to_owned());
    };
    if sampled.samples < LEAST_SAMPLES {
        return Some(format!("too few samples ({}) to know its latency", sampled.samples));
    }
    let hits = sampled.first_cache as f64 / sampled.samples.max(1) as f64;
    let is_stride = matches!(level.class, Class::Stride(_) | Class::UnknownStride);
    if is_stride && hits >= HITS {
        return Some(format!("a stride that already hits: {:.0} % in L1", 100.0 * hits));
    }
    probed.and_then(Probed::refusal)
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
        Class::Complex { ahead: false } => {
            "its address needs values that are loaded just before, one after the other".to_owned()
        }
        Class::Irregular => "how its address is computed is not known".to_owned(),
        Class::Stride(_)
        | Class::UnknownStride
        | Class::Indirect { .. }
        | Class::Complex { .. } => {
            return None;
        }
    })
}
