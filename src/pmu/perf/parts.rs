//! Which groups are counted in which run.

use crate::{CorePlan, Request};
use tma::tables::EventId;

/// The groups of one run, for each kind of core: index of the plan's group and its events.
pub type Part = Vec<Vec<(usize, Vec<EventId>)>>;

/// All groups in one run, or each group in a run of its own.
pub fn parts(request: &Request<'_>) -> Vec<Part> {
    let all = |core: &CorePlan<'_>| core.groups.iter().cloned().enumerate().collect::<Vec<_>>();
    let whole: Part = request.cores.iter().map(all).collect();
    if request.multiplex {
        return vec![whole];
    }
    let mut parts = Vec::new();
    for (at, groups) in whole.iter().enumerate() {
        for group in groups {
            let mut part: Part = vec![Vec::new(); whole.len()];
            part[at].push(group.clone());
            parts.push(part);
        }
    }
    if parts.is_empty() { vec![whole] } else { parts }
}
