//! Facts of the document that the verdict and the next steps are based on.

use estimate::Part;
use report::documents::{NodeRow, Report};
use tma::tables::Level1;

/// From this share on the kernel is what a report is about.
pub(super) const MUCH: f64 = 0.5;

/// Share of the time in the kernel; 0 where that is not known.
pub(super) fn kernel(report: &Report) -> f64 {
    report.sampled.as_ref().and_then(|sampled| sampled.kernel).unwrap_or(0.0)
}

/// Whether mispredicted branches are the bottleneck, of the estimate or of the counted tree.
pub(super) fn is_mispredicted(report: &Report) -> bool {
    if let Some(estimate) = &report.estimate {
        return estimate.program.bottleneck.0 == Some(Part::BadSpeculation);
    }
    let parent = |node: &&NodeRow| {
        let is_it =
            |one: &&NodeRow| Some(&one.id) == node.parent.as_ref() && one.place == node.place;
        report.nodes.iter().filter(|one| one.level < node.level).find(is_it)
    };
    let lineage = |node| std::iter::successors(Some(node), parent);
    let found = report.nodes.iter().filter(|node| node.bottleneck);
    found.flat_map(lineage).any(|node| Level1::of(&node.id) == Some(Level1::BadSpeculation))
}
