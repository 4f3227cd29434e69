//! What runs along with a measurement.

use crate::Target;
use tma::error::Result;

/// Whom a companion goes with.
#[derive(Debug)]
pub struct Whom<'a> {
    /// As in the request.
    pub target: &'a Target,
    /// Threads, where tasks are measured.
    pub tasks: Vec<i32>,
    /// CPUs they may run on, or that are measured whole.
    pub cpus: Vec<u32>,
    /// Children and new threads too.
    pub inherit: bool,
    /// The task waits for its exec; that starts the measurement.
    pub enable_on_exec: bool,
}

/// What goes on beside a run of the collector.
pub trait Companion {
    /// Makes ready; the command is forked and waits.
    ///
    /// # Errors
    /// It cannot; nothing is measured then.
    fn attach(&mut self, whom: &Whom<'_>) -> Result<()>;
    /// Starts, unless exec does.
    fn enable(&mut self);
    /// The run is over. Called once for each run, whether it was attached or not.
    fn finish(&mut self);
}

/// No companion.
#[derive(Debug)]
pub struct Alone;

impl Companion for Alone {
    fn attach(&mut self, _: &Whom<'_>) -> Result<()> {
        Ok(())
    }
    fn enable(&mut self) {}
    fn finish(&mut self) {}
}
