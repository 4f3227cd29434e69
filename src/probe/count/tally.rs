//! What program images have counted that have ended. Images with the same plans are added up.

use crate::patch::Unprobed;
use crate::plan::{Placement, Planned};

/// The counters of images with the same plans.
pub(super) struct Tally {
    /// Index of their target.
    pub target: usize,
    /// By function of the target; none where it was not patched.
    pub plans: Vec<Result<Planned, Unprobed>>,
    counters: Vec<u64>,
    /// How many probes one image has.
    pub probes: usize,
}

impl Tally {
    /// Of one image.
    pub fn new(
        target: usize,
        mut plans: Vec<Result<Planned, Unprobed>>,
        counters: Vec<u64>,
        probes: usize,
    ) -> Self {
        // Where trampolines lie differs between images, and is of no more interest.
        for placement in plans.iter_mut().flatten().flat_map(|planned| &mut planned.placements) {
            if let Placement::Placed(site) = placement {
                site.trampoline = None;
            }
        }
        Self { target, plans, counters, probes }
    }

    /// The counters of a function of the target, the first of which has this number.
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
