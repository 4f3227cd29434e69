//! Which events have a counter of their own, at most.
//!
//! Every counter and every event is a vertex of a bipartite graph; the maximum flow from events to
//! counters serves as many as can be. Plain augmenting paths over lists of counters, no ordering
//! tricks.

use std::collections::{BTreeMap, BTreeSet};

/// A counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    General(u32),
    Fixed(u32),
}

/// How many demands can be met, each by a place of its own.
pub fn maximum_flow(demands: &[Vec<Place>]) -> usize {
    let mut holder: BTreeMap<Place, usize> = BTreeMap::new();
    let mut met = 0;
    for d in 0..demands.len() {
        let mut seen = BTreeSet::new();
        met += usize::from(augment(d, demands, &mut holder, &mut seen));
    }
    met
}

fn augment(
    d: usize,
    demands: &[Vec<Place>],
    holder: &mut BTreeMap<Place, usize>,
    seen: &mut BTreeSet<Place>,
) -> bool {
    for &place in &demands[d] {
        if !seen.insert(place) {
            continue;
        }
        let other = holder.get(&place).copied();
        if other.is_none_or(|o| augment(o, demands, holder, seen)) {
            holder.insert(place, d);
            return true;
        }
    }
    false
}
