//! Whether a further run ended like the one that was sampled.

use report::documents::{Exit, Report};

/// Why a run is not like the one that was sampled, so that its counts say nothing of that.
pub(super) fn cut_short(
    report: &Report,
    ended: Option<pmu::Exit>,
    interrupted: Option<i32>,
) -> Option<&'static str> {
    if interrupted.is_some() {
        return Some("interrupted");
    }
    let same = report.exit? == Exit::from(ended?);
    (!same).then_some("a further run of the command ended otherwise than the first")
}
