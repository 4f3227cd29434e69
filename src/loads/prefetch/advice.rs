//! Distance, loop and coverage of a prefetch: miss cost ÷ cycles of an iteration is how many iterations ahead.

use super::cost::{Cost, Measured, Peak, Sampled, iteration_cost, peaks};
use super::pace::{Pace, TripCount, Trips};
use super::probed::{Probed, by_copy, misses_at_first, refusal};
use super::refusal::{Missing, Refusal};
use crate::access::Access;
use crate::class::Class;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::OnceLock;

/// A prefetch belongs into the outer loop if the trips are fewer than this many distances: it would cover less than
/// 80 % of the executions (APT-GET, k = 5).
const DISTANCES: f64 = 5.0;

/// Recorded iterations of a loop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timed {
    /// Cycles of iterations without a recorded misprediction, each within one sample, and how many took them;
    /// ascending.
    pub iterations: Vec<(u64, u64)>,
    /// Iterations with a misprediction, which are left out.
    pub mispredicted: u64,
    /// Whether entries of the branch stacks have cycles.
    pub has_cycles: bool,
    /// Trips.
    pub trips: Trips,
    /// [`Timed::modes`], once computed: the loads of a loop share them.
    pub modes: OnceLock<Vec<Peak>>,
}

impl Timed {
    /// Peaks of the iterations' cycles.
    pub fn modes(&self) -> &[Peak] {
        self.modes.get_or_init(|| peaks(&self.iterations))
    }
}

/// Known properties of a load.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// How its addresses are made.
    pub access: Option<&'a Access>,
    /// The loops around it, the innermost first; `None` where nothing was recorded.
    pub loops: Vec<Option<Timed>>,
    /// Its samples.
    pub sampled: Option<Sampled>,
    /// An iteration without misses of the innermost loop, measured.
    pub measured: Option<Measured>,
    /// Executions that probes timed, in place of samples and of cycles in branch stacks.
    pub probed: Option<Probed>,
    /// Limit of the loops however far ahead prefetches are, where known.
    pub pace: Option<Pace>,
}

/// The loop that a prefetch belongs into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Site {
    /// The innermost loop.
    #[default]
    Inner,
    /// The loop around that one.
    Outer,
}

/// As in documents.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Advice on a load. What is not known has the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Why no prefetch is advised.
    pub refused: Option<Refusal>,
    /// Modes of the cycles of the innermost loop's iterations.
    pub modes: Vec<Peak>,
    /// Cycles of an iteration without misses (IC) of the loop that the prefetch belongs into.
    pub ic: Result<Cost, Missing>,
    /// Cycles that a miss adds (MC): the highest mode − IC of the innermost loop, or the fenced latency of the
    /// slowest level that matters − that of a hit.
    pub mc: Result<f64, Missing>,
    /// Where MC is from, if not from modes.
    pub mc_source: Option<String>,
    /// Cycles of an iteration of that loop once its misses are prefetched, which the distance divides: IC, or what the
    /// misses take that the core has no room for.
    pub iteration: Result<Cost, Missing>,
    /// How many times as fast the innermost loop can be at most, where that is known.
    pub speedup: Option<f64>,
    /// Trips of the innermost loop.
    pub trips: TripCount,
    /// For how many executions in a row the address is ahead by a stride, if for more than the trips.
    pub runs_on: Option<TripCount>,
    /// Where the prefetch belongs.
    pub site: Result<Site, Missing>,
    /// How many iterations of that loop ahead.
    pub distance: Result<u64, Missing>,
    /// The nearest and the farthest, where the range of a measured IC makes a difference.
    pub distances: Option<(u64, u64)>,
    /// Least share of the executions that it covers: 1 − distance ÷ trips of that loop.
    pub coverage: Result<f64, Missing>,
}

/// Advises on a load.
pub fn advise(request: &Request) -> Advice {
    let inner = request.loops.first().and_then(Option::as_ref);
    let modes = inner.map(|timed| timed.modes().to_vec()).unwrap_or_default();
    let trips = inner.map_or(TripCount::Unknown, |timed| timed.trips.count());
    let ic = cost(request, inner, &modes);
    let mc = match &request.probed {
        Some(probed) => probed.miss_cost(),
        None => ic.clone().and_then(|ic| miss_cost(&modes, &ic)),
    };
    let pace = request.pace.as_ref();
    let iteration = iteration(pace, 0, &mc, &ic);
    let distance = ratio(&mc, &iteration);
    // With an unknown IC, which is at most the lowest mode, the distance is at least this.
    let least = distance.clone().unwrap_or_else(|_| least_distance(&modes));
    let known = distance.is_ok();
    let runs_on = request.probed.as_ref().and_then(|own| own.runs_on(trips));
    let ahead = runs_on.unwrap_or(trips);
    let probed = request.probed.as_ref();
    let site = match request.access.is_some_and(|access| misses_at_first(access, probed, trips)) {
        true => Ok(Site::Outer),
        false => site(request, ahead, least, known),
    };
    let cycles = ic.as_ref().ok().map(|ic| ic.cycles);
    let no_gain = || pace.and_then(|pace| pace.refusal(cycles));
    let refused = refusal(request.access, request.sampled.as_ref(), probed, trips);
    let advice = Advice {
        refused: refused.or_else(no_gain),
        speedup: pace.and_then(|pace| pace.speedup(cycles)),
        iteration,
        modes,
        ic,
        mc,
        mc_source: request.probed.as_ref().and_then(Probed::source),
        trips,
        coverage: coverage(&distance, ahead),
        runs_on,
        site,
        distances: None,
        distance,
    };
    let advice = match advice.site {
        Ok(Site::Outer) => outer(request, advice),
        _ => advice,
    };
    Advice { distances: distances(&advice.mc, &advice.iteration), ..advice }
}

fn cost(request: &Request, inner: Option<&Timed>, modes: &[Peak]) -> Result<Cost, Missing> {
    if request.probed.is_some() {
        return request.measured.as_ref().map(Measured::cost).ok_or(Missing::NotMeasured);
    }
    let inner = inner.ok_or(Missing::NoStacks)?;
    match (inner.has_cycles, &request.measured) {
        (true, measured) => {
            let none = Sampled::default();
            let sampled = request.sampled.as_ref().unwrap_or(&none);
            iteration_cost(modes, sampled, measured.as_ref())
        }
        (false, Some(measured)) => Ok(measured.cost()),
        (false, None) => Err(Missing::NoCycles),
    }
}

fn miss_cost(modes: &[Peak], ic: &Cost) -> Result<f64, Missing> {
    let highest = modes.last().ok_or(Missing::NoCycles)?.at as f64;
    match highest > ic.cycles {
        true => Ok(highest - ic.cycles),
        false => Err(Missing::NoMisses),
    }
}

/// The loop in which enough trips are left to cover.
fn site(request: &Request, trips: TripCount, distance: u64, known: bool) -> Result<Site, Missing> {
    let enough = trips.is_at_least(DISTANCES * distance as f64);
    let has_outer = request.access.is_some_and(|access| access.levels.len() > 1);
    match (enough, known) {
        (Some(false), _) if has_outer => Ok(Site::Outer),
        (Some(_), true) => Ok(Site::Inner),
        (_, false) => Err(Missing::NoDistance),
        (None, true) => Err(Missing::VagueTrips),
    }
}

/// The distance in iterations of the outer loop: each takes as many inner ones as that has trips.
fn outer(request: &Request, advice: Advice) -> Advice {
    let trips = advice.trips.least().unwrap_or(1.0).max(1.0);
    let ic = advice.ic.map(|ic| Cost {
        cycles: ic.cycles * trips,
        range: ic.range.map(|(low, high)| (low * trips, high * trips)),
        source: format!("{trips:.0} iterations of the inner loop ({})", ic.source),
    });
    let iteration = iteration(request.pace.as_ref(), 1, &advice.mc, &ic);
    let distance = ratio(&advice.mc, &iteration);
    let count = request
        .loops
        .get(1)
        .and_then(Option::as_ref)
        .map_or(TripCount::Unknown, |timed| timed.trips.count());
    let level = request.access.and_then(|access| access.levels.get(1));
    let refused = advice.refused.or_else(|| {
        let level = level?;
        let why = match level.class.is_computable_ahead() {
            true => by_copy(level)?,
            false if level.class == Class::Irregular => Refusal::Irregular,
            false => Refusal::NotAhead,
        };
        Some(Refusal::Outer(Box::new(why)))
    });
    Advice { refused, coverage: coverage(&distance, count), ic, iteration, distance, ..advice }
}

/// A distance beyond this is none: the iterations' times are not what they seem, or the cache holds no such number
/// of prefetched lines.
const MOST_AHEAD: f64 = 4096.0;

/// Cycles of an iteration once its misses are prefetched, in the loop with this number: those without misses, or until the
/// core has room for its misses, whichever are more. Where the first are not known the second give the longest distance
/// that is of use.
pub(super) fn iteration(
    pace: Option<&Pace>,
    number: usize,
    mc: &Result<f64, Missing>,
    ic: &Result<Cost, Missing>,
) -> Result<Cost, Missing> {
    let latency = mc.as_ref().ok().copied();
    let Some(room) = pace.zip(latency).and_then(|(pace, mc)| pace.cycles(number, mc)) else {
        return ic.clone();
    };
    let Ok(ic) = ic else {
        let source = format!("{}; enough for any IC", room.source);
        return Ok(Cost { source, ..room });
    };
    if ic.cycles >= room.cycles {
        return Ok(ic.clone());
    }
    let (low, high) = ic.range.unwrap_or((ic.cycles, ic.cycles));
    let range = room.range.map(|(least, most)| (low.max(least), high.max(most)));
    Ok(Cost { range, ..room })
}

/// The distances of the lowest and the highest cycles of an iteration. What a mode of the recording adds to IC is the highest
/// mode, so it changes little.
pub(super) fn distances(
    mc: &Result<f64, Missing>,
    iteration: &Result<Cost, Missing>,
) -> Option<(u64, u64)> {
    let (low, high) = iteration.as_ref().ok()?.range?;
    let of = |cycles: f64| {
        let cost = Cost { cycles, range: None, source: String::new() };
        ratio(mc, &Ok(cost)).ok()
    };
    let (near, far) = (of(high)?, of(low)?);
    (near != far).then_some((near, far))
}

/// max(1, ⌈MC ÷ cycles of an iteration⌉), unless that is too far.
fn ratio(mc: &Result<f64, Missing>, ic: &Result<Cost, Missing>) -> Result<u64, Missing> {
    let (mc, ic) = (mc.clone()?, ic.clone()?);
    let ahead = (mc / ic.cycles).ceil().max(1.0);
    match ahead <= MOST_AHEAD {
        true => Ok(ahead as u64),
        false => Err(Missing::TooFar { mc, ic: ic.cycles, most: MOST_AHEAD }),
    }
}

/// The distance if all cycles of the lowest mode are IC.
fn least_distance(modes: &[Peak]) -> u64 {
    let (Some(lowest), Some(highest)) = (modes.first(), modes.last()) else { return 1 };
    (highest.at - lowest.at).div_ceil(lowest.at.max(1)).max(1)
}

/// Least share of the executions that a prefetch this far ahead covers.
pub(super) fn coverage(distance: &Result<u64, Missing>, trips: TripCount) -> Result<f64, Missing> {
    let distance = distance.clone()?;
    let trips = trips.least().ok_or(Missing::NoTrips)?;
    Ok((1.0 - distance as f64 / trips).max(0.0))
}
