//! Trips of a loop from recorded branches: the one rule for all documents ([`loads::prefetch::Trips`]).

use branches::stacks::{LoopSum, Sums};
use loads::prefetch::{TripCount, Trips};
use report::documents::branches::TripsRow;

/// The recorded trips of a loop, in an event with these sums. Counts without windows show no ends, and so no trips.
pub(crate) fn recorded(sum: &LoopSum, of: &Sums) -> Trips {
    // The head may be entered again by another branch, or by none.
    let seen = sum.trips.counts().chain(sum.truncated.counts());
    let seen = seen.map(|(trips, n)| trips.saturating_mul(n)).fold(0, u64::saturating_add);
    Trips {
        whole: sum.trips.counts().collect(),
        taken: seen.saturating_sub(sum.entered),
        entered: sum.entered,
        left: sum.left,
        at_least: sum.truncated.counts().last().map(|(trips, _)| trips),
        is_complete: of.is_traced,
    }
}

/// As a row of `tdtool.branches/1`.
pub(crate) fn row(sum: &LoopSum, of: &Sums) -> TripsRow {
    let mut row = TripsRow {
        whole: sum.trips.number(),
        mean: sum.trips.mean(),
        histogram: sum.trips.counts().collect(),
        truncated: sum.truncated.number(),
        at_least: sum.truncated.counts().last().map(|(trips, _)| trips),
        ..TripsRow::default()
    };
    match recorded(sum, of).count() {
        TripCount::Exactly(trips) => row.always = Some(trips),
        TripCount::About(trips) => row.about = Some(trips),
        TripCount::AtLeast(trips) => row.mean_at_least = Some(trips),
        TripCount::Unknown => {}
    }
    row
}
