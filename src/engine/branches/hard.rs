//! Edges and blocks of an event → branches that are hard to predict.

use branches::stacks::Analysis;
use loads::recorded::is_hard;
use profile::address_space::ModuleAddress;
use std::collections::BTreeMap;

/// Sums of a branch over all of its targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// Times that it was taken.
    pub taken: u64,
    /// Times that it was taken with its prediction.
    pub marked: u64,
    /// Times that this prediction was wrong.
    pub mispredicted: u64,
    /// Executions of the block that it ends, where the flow of its function is known.
    pub executions: Option<u64>,
}

impl Known {
    /// Whether it is hard: mispredictions ÷ executions. Entries show taken executions only, so that the
    /// mispredictions are at least these; executions are those of its block, else the taken ones.
    pub fn is_hard(&self) -> bool {
        is_hard(self.mispredicted, self.of())
    }

    /// The share of its executions that were mispredicted, at least; of the taken ones where executions are not known.
    pub fn share(&self) -> f64 {
        self.mispredicted as f64 / self.of().max(1) as f64
    }

    /// The executions that the mispredictions are of: as many of all as of the taken ones are marked.
    fn of(&self) -> u64 {
        let executed = self.executions.unwrap_or(0).max(self.taken);
        let share = self.marked as f64 / self.taken.max(1) as f64;
        (executed as f64 * share) as u64
    }
}

/// The branches of an event whose module is known.
pub fn known(found: &Analysis) -> BTreeMap<ModuleAddress, Known> {
    let mut all: BTreeMap<ModuleAddress, Known> = BTreeMap::new();
    for (edge, sum) in &found.sums.edges {
        let Some(from) = edge.from else { continue };
        let own = all.entry(from).or_default();
        own.taken = own.taken.saturating_add(sum.count);
        own.marked = own.marked.saturating_add(sum.marked);
        own.mispredicted = own.mispredicted.saturating_add(sum.mispredicted);
    }
    for block in &found.blocks {
        let at = |address| ModuleAddress { module: block.module, address };
        // The last one ends it.
        if let Some((_, own)) = all.range_mut(at(block.start)..at(block.end)).next_back() {
            own.executions = Some(block.count);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_marked_and_executed_counts() {
        let branch = |taken, marked, mispredicted, executions| {
            Known { taken, marked, mispredicted, executions }.is_hard()
        };
        assert!(branch(100, 100, 50, None) && branch(100, 100, 50, Some(200)));
        assert!(branch(1000, 20, 20, None), "what is not marked is not predicted");
        assert!(!branch(16, 16, 16, Some(128)), "1 in 8 of its executions");
        assert!(!branch(1, 1, 1, None) && !branch(100, 0, 0, Some(100)));
    }
}
