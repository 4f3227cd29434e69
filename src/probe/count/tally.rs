//! Counters of program images that have ended, summed over images with the same plans.

use crate::patch::Unprobed;
use crate::plan::{Placement, Planned};

/// The counters of images with the same plans.
pub(super) struct Tally {
    /// Index of their target.
    pub target: usize,
    /// Plan of each function of the target, or why it was not patched.
    pub plans: Vec<Result<Planned, Unprobed>>,
    counters: Vec<u64>,
    /// Number of probes of one image.
    pub probes: usize,
}

impl Tally {
    /// The counters of one image.
    pub fn new(
        target: usize,
        mut plans: Vec<Result<Planned, Unprobed>>,
        counters: Vec<u64>,
        probes: usize,
    ) -> Self {
        // The places of trampolines differ between images and are not needed any more.
        for placement in plans.iter_mut().flatten().flat_map(|planned| &mut planned.placements) {
            if let Placement::Placed(site) = placement {
                site.trampoline = None;
            }
        }
        Self { target, plans, counters, probes }
    }

    /// The counters of a function, whose first has this index.
    pub fn counts(&self, first: usize, blocks: usize) -> &[u64] {
        self.counters.get(first..first + blocks).unwrap_or_default()
    }

    /// Adds another image to `all`.
    pub fn add_to(self, all: &mut Vec<Tally>) {
        let is_same = |other: &&mut Tally| {
            other.target == self.target
                && other.counters.len() == self.counters.len()
                && other.plans == self.plans
        };
        match all.iter_mut().find(is_same) {
            Some(sum) => {
                sum.counters.iter_mut().zip(self.counters).for_each(|(sum, n)| *sum += n);
            }
            None => all.push(self),
        }
    }
}
