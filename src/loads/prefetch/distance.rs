//! Miss cost ÷ cycles of an iteration → how many iterations ahead.

use super::cost::Cost;
use super::missing::Missing;
use super::pace::Pace;
use super::peaks::Peak;
use super::trips::TripCount;

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
pub(super) fn ratio(mc: &Result<f64, Missing>, ic: &Result<Cost, Missing>) -> Result<u64, Missing> {
    let (mc, ic) = (mc.clone()?, ic.clone()?);
    let ahead = (mc / ic.cycles).ceil().max(1.0);
    match ahead <= MOST_AHEAD {
        true => Ok(ahead as u64),
        false => Err(Missing::TooFar { mc, ic: ic.cycles, most: MOST_AHEAD }),
    }
}

/// The distance if all cycles of the lowest mode are IC.
pub(super) fn least_distance(modes: &[Peak]) -> u64 {
    let (Some(lowest), Some(highest)) = (modes.first(), modes.last()) else { return 1 };
    (highest.at - lowest.at).div_ceil(lowest.at.max(1)).max(1)
}

/// Least share of the executions that a prefetch this far ahead covers.
pub(super) fn coverage(distance: &Result<u64, Missing>, trips: TripCount) -> Result<f64, Missing> {
    let distance = distance.clone()?;
    let trips = trips.least().ok_or(Missing::NoTrips)?;
    Ok((1.0 - distance as f64 / trips).max(0.0))
}
