//! Whether a further run ended like the one that was sampled.

use crate::documents::{Exit, Report};

/// A block of which nothing is known because of a signal.
pub(super) const INTERRUPTED: &str = "not counted: interrupted";

/// Why a run is not like the one that was sampled, so that its counts say nothing of that.
pub(super) fn cut_short(
    report: &Report,
    ended: Option<pmu::Exit>,
    interrupted: Option<i32>,
) -> Option<String> {
    if interrupted.is_some() {
        return Some(INTERRUPTED.to_owned());
    }
    let same = report.exit? == Exit::from(ended?);
    (!same).then(|| {
        "not counted: a further run of the command ended otherwise than the first".to_owned()
    })
}
