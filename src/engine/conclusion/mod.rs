//! Conclusions of a report: its verdict in one or two sentences (`verdict`), and commands that show more (`next`).

mod next;
mod verdict;

use crate::commands::Carried;
use crate::topdown::LiveAsk;
use report::documents::Report;
use report::documents::conclusion::Conclusion;

/// Enters the conclusion of a report of a whole measurement; `live`: what was asked of a live measurement; its commands
/// have the `carried` options.
pub(crate) fn conclude(report: &mut Report, live: Option<&LiveAsk>, carried: &Carried) {
    if report.interval.is_some() {
        return;
    }
    let verdict = verdict::verdict(report).unwrap_or_default();
    let next = next::next(report, live);
    let is_empty = verdict.is_empty() && next.is_empty();
    report.conclusion = (!is_empty).then_some(Conclusion { verdict, next });
    carried.enter(report);
}
