//! Events with their encodings, ready to open.

use crate::machine::{Encoding, encode};
use tma::quantity::Missing;
use tma::tables::{EventId, PmuKind, Table};

/// An event ready to open.
#[derive(Debug, Clone, Copy)]
pub struct Coded {
    /// The event.
    pub id: EventId,
    /// Its encoding.
    pub encoding: Encoding,
    /// Whether it counts all threads of the core.
    pub any: bool,
}

pub(super) fn ids(part: &[Coded]) -> Vec<EventId> {
    part.iter().map(|e| e.id).collect()
}

/// The encoding of event `id`, or the reason why it has none.
pub fn code(
    table: &Table,
    id: EventId,
    pmu: &crate::machine::Pmu,
    smt: bool,
) -> std::result::Result<Coded, Missing> {
    let Some(event) = table.events.get(usize::from(id)) else {
        return Err(Missing::NotMeasured(format!("no event number {id} in {}", table.name).into()));
    };
    let name = &event.name;
    let outside = |what: &str| Missing::NotMeasured(format!("{name} {what}").into());
    match event.spec.pmu {
        PmuKind::Core => {}
        PmuKind::Tsc => return Err(outside("follows from the run's duration")),
        PmuKind::Power => return Err(outside("counts a whole socket's energy")),
        PmuKind::Uncore => return Err(outside("counts outside the cores")),
        PmuKind::Latency => return Err(outside("is known from precise samples only")),
        PmuKind::Abstract => return Err(outside("exists in no processor")),
    }
    // One thread counts its own share only; without SMT that is everything.
    if event.spec.percore && smt {
        return Err(outside("needs the sum over both threads of the core"));
    }
    let encoding = encode(&event.spec, pmu)
        .map_err(|why| Missing::NotSupported(format!("{name}: {why}").into()))?;
    Ok(Coded { id, encoding, any: event.spec.any })
}
