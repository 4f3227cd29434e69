//! Advice as rows of the document.

use super::candidates::{Candidate, Evidence, Loads, Loop, NoCycles};
use super::in_flight::HostMisses;
use crate::recorded_loads::gather::levels;
use loads::access::Level;
use loads::class::{Ahead, Class};
use loads::prefetch::{
    Advice, InFlight, Measured, Missing, Refusal, Request, Sampled, Site, Timed, TripCount, advise,
};
use loads::recorded::{self, Sum};
use report::documents::prefetch::{
    AdviceRow, Evidence as EvidenceRow, LoopRow, ModeRow, SourceRow,
};
use std::collections::HashMap;
use tma::Address;

/// Measures an iteration of a loop without misses, from its code: cycles, or why not.
pub type Measure<'a> = &'a mut dyn FnMut(&[u8]) -> Result<Cycles, NoCycles>;

/// Measured cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cycles {
    /// As measured.
    pub cycles: f64,
    /// The lowest and the highest of several measurements.
    pub range: (f64, f64),
    /// Whether all loads were made to load from one address, as they miss the first cache in the sandbox, too.
    pub at_one_address: bool,
}

impl Cycles {
    /// How the block was measured, after a space; empty if it was as it is.
    pub fn how(&self) -> &'static str {
        if self.at_one_address { " with its loads from one address" } else { "" }
    }
}

/// Measurements of this host.
#[derive(Debug, Clone)]
pub struct Host {
    /// Core cycles in a nanosecond.
    pub cycles_per_ns: f64,
    /// Misses in flight, or why they are not known.
    pub in_flight: tma::Result<HostMisses>,
}

impl Host {
    /// Misses in flight, in core cycles.
    pub(super) fn in_flight_cycles(&self) -> Option<InFlight> {
        self.in_flight.as_ref().ok()?.in_cycles(self.cycles_per_ns)
    }
}

/// Loops already measured, by module and address.
type Known = HashMap<(String, u64), Result<Cycles, NoCycles>>;

/// Rows of all candidates, once for each event that samples them.
pub(super) fn rows(
    candidates: Vec<Candidate>,
    evidence: &Evidence,
    mut measure: Option<Measure<'_>>,
) -> Vec<AdviceRow> {
    let mut known = Known::new();
    let mut rows = Vec::new();
    for one in &candidates {
        let own = evidence.loads.iter().filter(|loads| loads.sums.contains_key(&one.load));
        let mut events: Vec<Option<&Loads>> = own.map(Some).collect();
        if events.is_empty() {
            events.push(None);
        }
        for loads in events {
            rows.push(row(one, loads, evidence, &mut measure, &mut known));
        }
    }
    sort(&mut rows);
    rows
}

/// In order of the document: what has most of the latency comes first, whether its distance is known or not.
pub(super) fn sort(rows: &mut [AdviceRow]) {
    rows.sort_by(|a, b| {
        let rank = |row: &AdviceRow| (row.refused.is_some(), !row.undecided);
        rank(a).cmp(&rank(b)).then(b.evidence.share.total_cmp(&a.evidence.share))
    });
}

fn row(
    one: &Candidate,
    loads: Option<&Loads>,
    evidence: &Evidence,
    measure: &mut Option<Measure<'_>>,
    known: &mut Known,
) -> AdviceRow {
    let module = &one.load.0;
    let heads = one.access.iter().flat_map(|access| &access.levels).map(|level| level.head);
    let around: Vec<Option<&Loop>> =
        heads.map(|head| evidence.loops.get(&(module.clone(), head))).collect();
    let sum = loads.and_then(|loads| loads.sums.get(&one.load));
    let mut request = Request {
        access: one.access.as_ref(),
        loops: around.iter().map(|own| own.map(|own| timed(&own.timed))).collect(),
        sampled: loads.zip(sum).map(|(loads, sum)| sampled(one, loads, sum)),
        ..Request::default()
    };
    let mut advice = advise(&request);
    let mut unknown = Vec::new();
    if advice.refused.is_none()
        && advice.ic.is_err()
        && let Some(measure) = measure
    {
        match measured(one, measure, known) {
            Ok(measured) => {
                request.measured = Some(measured);
                advice = advise(&request);
            }
            Err(why) => unknown.push(format!("measured block: {why}")),
        }
    }
    let mut row = AdviceRow {
        evidence: loads.zip(sum).map(|(loads, sum)| samples(loads, sum)).unwrap_or_default(),
        ..identified(one)
    };
    add_access(&mut row, one);
    row.inner = loop_row(one, around.first().copied().flatten(), &advice);
    add_advice(&mut row, one, advice);
    row.unknown.extend(unknown);
    if row.refused.is_none()
        && around.first().copied().flatten().is_some_and(|own| !own.timed.has_cycles)
    {
        row.unknown.insert(0, "iterations: this LBR has no cycles".to_owned());
    }
    row
}

/// The iterations of a loop, with the modes that its other loads have, too.
fn timed(own: &Timed) -> Timed {
    own.modes();
    own.clone()
}

/// A row with nothing but which load it is.
pub(super) fn identified(one: &Candidate) -> AdviceRow {
    let (module, address) = &one.load;
    AdviceRow {
        module: module.0.clone(),
        build_id: module.1.as_ref().map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()),
        load: Address(*address),
        function: one.function.clone(),
        file: one.line.file.clone(),
        line: one.line.line,
        column: one.line.column,
        source: one.source.as_ref().map(|point| SourceRow {
            function: point.function.clone(),
            offset: point.offset,
            discriminator: base(point.discriminator),
        }),
        ..AdviceRow::default()
    }
}

fn sampled(one: &Candidate, loads: &Loads, sum: &Sum) -> Sampled {
    let in_loop: u64 = loads
        .sums
        .iter()
        .filter(|((module, at), _)| *module == one.load.0 && one.neighbours.contains(at))
        .map(|(_, sum)| sum.samples)
        .sum();
    Sampled {
        samples: sum.samples,
        first_cache: sum.level(recorded::Level::L1),
        latencies: sum.latencies.iter().map(|(cycles, n)| (u64::from(cycles), n)).collect(),
        least_latency: loads.least_latency,
        share_of_loop: sum.samples as f64 / in_loop.max(sum.samples).max(1) as f64,
    }
}

fn measured(
    one: &Candidate,
    measure: &mut Measure<'_>,
    known: &mut Known,
) -> Result<Measured, NoCycles> {
    let (start, code) = one.body.as_ref().map_err(Clone::clone)?;
    let place = (one.load.0.0.clone(), *start);
    let found = known.entry(place).or_insert_with(|| measure(code));
    let found = found.clone()?;
    let source = format!("measured block{}, here", found.how());
    Ok(Measured { cycles: found.cycles, range: found.range, source })
}

fn samples(loads: &Loads, sum: &Sum) -> EvidenceRow {
    let share = match loads.total.weight > 0.0 {
        true => sum.weight / loads.total.weight,
        false => sum.events / loads.total.events.max(1.0),
    };
    EvidenceRow {
        event: Some(loads.event),
        share,
        samples: sum.samples,
        latency_mean: sum.latencies.mean(),
        levels: levels(sum),
    }
}

pub(super) fn add_access(row: &mut AdviceRow, one: &Candidate) {
    let levels = one.access.as_ref().map(|access| &access.levels[..]).unwrap_or_default();
    if let Some(level) = levels.first() {
        row.class = Some(level.class.kind());
        row.pattern = Some(level.words());
        row.stride = match level.class {
            Class::Stride(step) => Some(step),
            _ => None,
        };
        row.wraps = level.wraps;
        row.paths_agree = Some(level.agree as f64 / level.paths.max(1) as f64);
        row.slice = slice(level);
    }
    if let Some(level) = levels.get(1) {
        row.outer_class = Some(level.class.kind());
        row.outer_pattern = Some(level.words());
    }
}

fn slice(level: &Level) -> Vec<Address> {
    level.slice.iter().copied().map(Address).collect()
}

fn loop_row(one: &Candidate, own: Option<&Loop>, advice: &Advice) -> Option<LoopRow> {
    let level = one.access.as_ref()?.innermost()?;
    let mut row = LoopRow { head: Address(level.head), ..LoopRow::default() };
    let Some(own) = own else { return Some(row) };
    row.event = Some(own.event);
    add_trips(&mut row, advice.trips);
    row.iterations = own.timed.iterations.iter().map(|(_, n)| n).sum();
    row.mispredicted = own.timed.mispredicted;
    row.modes =
        advice.modes.iter().map(|mode| ModeRow { cycles: mode.at, share: mode.share }).collect();
    row.histogram = own.timed.iterations.clone();
    if !own.timed.has_cycles {
        row.histogram.clear();
    }
    Some(row)
}

pub(super) fn add_trips(row: &mut LoopRow, trips: TripCount) {
    match trips {
        TripCount::Exactly(trips) => row.trips = Some(trips),
        TripCount::About(trips) => row.trips_mean = Some(trips),
        TripCount::AtLeast(trips) => row.trips_at_least = Some(trips),
        TripCount::Unknown => {}
    }
}

pub(super) fn add_advice(row: &mut AdviceRow, one: &Candidate, advice: Advice) {
    row.undecided = advice.refused.as_ref().is_some_and(Refusal::is_undecided);
    row.without_code = advice.refused == Some(Refusal::NoCode);
    row.refused = advice.refused.as_ref().map(Refusal::to_string);
    let mut missing = |what: &str, why: &Missing| row.unknown.push(format!("{what}: {why}"));
    if row.refused.is_none() {
        let mut of = |what: &str, value: &Result<f64, Missing>| match value {
            Ok(value) => Some(*value),
            Err(why) => {
                missing(what, why);
                None
            }
        };
        row.ic = of("ic", &advice.ic.as_ref().map(|ic| ic.cycles).map_err(Clone::clone));
        row.mc = of("mc", &advice.mc);
        let distance = advice.distance.as_ref().map(|n| *n as f64).map_err(Clone::clone);
        row.distance = of("distance", &distance).map(|n| n as u64);
        row.coverage = of("coverage", &advice.coverage);
        row.distance_range = advice.distances;
        row.ic_range = advice.ic.as_ref().ok().and_then(|ic| ic.range);
        row.ic_source = advice.ic.ok().map(|ic| ic.source);
        let level = match advice.site {
            Ok(Site::Inner) => Some((Site::Inner, 0)),
            Ok(Site::Outer) => Some((Site::Outer, 1)),
            Err(why) => {
                missing("site", &why);
                None
            }
        };
        let levels = one.access.as_ref().map(|access| &access.levels[..]).unwrap_or_default();
        row.site = level.map(|(site, _)| site);
        let of_site = levels.get(level.map_or(0, |(_, n)| n));
        row.slice = of_site.map(slice).unwrap_or_default();
        row.site_loop = of_site.filter(|_| level.is_some()).map(|level| Address(level.head));
        let is_copied = |level: &&Level| level.class.ahead() == Ahead::ByCopy;
        row.copied = of_site.filter(is_copied).map(|level| level.slice.len() as u64);
        row.ahead = of_site.map(|level| level.class.ahead()).filter(|ahead| *ahead != Ahead::No);
    }
}

/// The base component of a discriminator, as LLVM encodes three of them in one: the low bit says that it is 0,
/// bit 6 that it has more than five bits (`getUnsignedFromPrefixEncoding` of DebugInfoMetadata.h).
fn base(discriminator: u64) -> u64 {
    if discriminator & 1 == 1 {
        return 0;
    }
    let bits = discriminator >> 1;
    match bits & 0x20 {
        0 => bits & 0x1f,
        _ => bits >> 1 & 0xfe0 | bits & 0x1f,
    }
}
