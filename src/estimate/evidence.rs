//! The evidence of a piece of code: a loop, a block, or several. Cycles are of all its executions in the run, or of
//! one, as long as they are all of the same.

use crate::interval::Interval;
use crate::reason::Reason;
use serde::{Deserialize, Serialize};

/// The bound of a piece of code in isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Slots of the core's width: the µop table has too few.
    IssueWidth,
    /// Fetching and decoding.
    FrontEnd,
    /// Ports, dependencies, store forwarding, dividers: whatever is behind the front end.
    Core,
    /// None that is known.
    Unknown,
}

/// A measurement in isolation: its data in the first cache, its branches predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct Isolated {
    /// Cycles.
    pub cycles: Interval,
    /// Their bound.
    pub bound: Bound,
}

/// Its mispredictions, as far as known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mispredicted {
    /// Cycles of those whose number and cost are known.
    pub cycles: Interval,
    /// The most cycles that others can take, and why not more is known of them.
    pub unknown: Option<(f64, Reason)>,
}

impl Mispredicted {
    /// All mispredictions are known, and cost this many cycles.
    pub fn known(cycles: Interval) -> Self {
        Self { cycles, unknown: None }
    }

    /// The most that those can take of which the number or the cost is not known.
    pub fn most(&self) -> f64 {
        self.unknown.as_ref().map_or(0.0, |(most, _)| *most)
    }
}

/// Its loads, as far as known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Loads {
    /// Their latencies beyond the first cache, summed as if none overlapped: the most that they can cost.
    pub at_most: Interval,
    /// The part of it of loads that are themselves the loop-carried dependency (pointer chases): they do not overlap.
    pub carried: Interval,
    /// The most that others can cost, of which nothing was measured.
    pub unknown: f64,
}

/// Everything known of a piece of code, or why it is not.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Cycles in the program: sampled.
    pub cycles: Interval,
    /// Cycles that its retired µops take at the core's full width.
    pub retiring: Result<Interval, Reason>,
    /// Its mispredictions.
    pub mispredicted: Mispredicted,
    /// The code in isolation.
    pub isolated: Result<Isolated, Reason>,
    /// Whether its divisions and roots were measured with other values than the program's, on which their time depends.
    pub other_values: bool,
    /// Whether it is a loop, whose executions follow each other in isolation as they do in the program.
    pub is_loop: bool,
    /// Cycles of the longest paths of dependencies through its executions, each after the other, with loads that hit the
    /// first cache: the most that its instructions can wait for each other.
    pub latency: f64,
    /// Its loads.
    pub loads: Result<Loads, Reason>,
    /// The most that fetching its code from beyond the first cache can cost; 0 where the hot code fits.
    pub fetch: f64,
}
