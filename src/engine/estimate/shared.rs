//! What all pieces of a run share.

use super::counted::Counted;
use super::evidence::{Clock, Context};
use super::footprint::Footprint;
use super::landing::Landing;
use crate::places::Places;
use estimate::Interval;
use isa::ports::Ports;
use report::documents::count::Count;
use tma::{Core, Result};

/// What all pieces share, without counts.
pub(super) struct Shared<'a> {
    pub core: &'a Core,
    /// Slots a cycle.
    pub width: Interval,
    /// Core cycles of the run.
    pub cycles: f64,
    pub samples: u64,
    pub clock: Clock,
    /// Cycles of a misprediction by the self-test.
    pub penalty: Option<f64>,
}

impl Shared<'_> {
    /// With counts.
    ///
    /// # Errors
    /// The table of ports cannot be read.
    pub fn context<'c>(&'c self, count: &'c Count) -> Result<Context<'c>> {
        Ok(Context {
            core: self.core,
            ports: Ports::of(self.core)?,
            width: self.width,
            cycles: self.cycles,
            samples: self.samples,
            clock: self.clock.clone(),
            penalty: count.misprediction_cycles.or(self.penalty),
            count,
            counted: Counted::new(count),
            branches: false,
            branches_wanted: false,
            entries_error: 0.0,
            footprint: Footprint::default(),
            loads_of: Places::default(),
            landing: Landing::default(),
        })
    }
}
