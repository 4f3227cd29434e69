//! Hooks into the runs of a measurement.

use crate::Target;
use tma::error::Result;

/// The tasks and CPUs of a run.
#[derive(Debug)]
pub struct Attachment<'a> {
    /// As in the request.
    pub target: &'a Target,
    /// Threads, if tasks are measured.
    pub tasks: Vec<i32>,
    /// CPUs that they may run on, or that are measured as a whole.
    pub cpus: Vec<u32>,
    /// Children and new threads too.
    pub inherit: bool,
    /// The task has not called exec yet, which starts the measurement.
    pub enable_on_exec: bool,
}

/// Called in each run of the collector.
pub trait RunHooks {
    /// Before the run: the command is forked and waits.
    ///
    /// # Errors
    /// Any failure; the measurement ends with it.
    fn attach(&mut self, to: &Attachment<'_>) -> Result<()>;
    /// Counting starts now, unless exec starts it.
    fn enable(&mut self);
    /// Counting is turned off, until it is enabled again.
    fn disable(&mut self);
    /// The run has ended. Called once per run, even if it failed.
    fn finish(&mut self);
}

/// No hooks.
#[derive(Debug)]
pub struct NoHooks;

impl RunHooks for NoHooks {
    fn attach(&mut self, _: &Attachment<'_>) -> Result<()> {
        Ok(())
    }
    fn enable(&mut self) {}
    fn disable(&mut self) {}
    fn finish(&mut self) {}
}
