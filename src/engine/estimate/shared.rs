//! Facts of a run that all pieces share.

use estimate::Interval;
use isa::ports::Ports;
use tma::Core;

/// Facts that all pieces share, without counts.
pub(super) struct Shared<'a> {
    pub core: &'a Core,
    /// Its ports, if it has a table.
    pub ports: Option<Ports>,
    /// Slots a cycle.
    pub width: Interval,
    /// Core cycles of the run.
    pub cycles: f64,
    pub samples: u64,
    pub clock: Clock,
    /// Cycles of a misprediction by the self-test.
    pub penalty: Option<f64>,
}

/// The core clock.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Clock {
    pub ghz: f64,
    /// Its relative error.
    pub error: f64,
    /// Why it was not measured.
    pub reason: Option<String>,
}
