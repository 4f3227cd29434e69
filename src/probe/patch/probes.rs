//! What a kind of run puts into the code of files.

use super::mapped::Shared;
use super::target::Target;
use super::tasks::Copies;
use super::unprobed::Unprobed;
use super::written::{Code, Written};
use crate::facts::Function;
use crate::plan::Room;
use std::sync::Arc;

/// A function of a target that is to be probed.
#[derive(Clone, Copy)]
pub struct Probed<'a> {
    /// Index of its target.
    pub number: usize,
    pub target: &'a Target,
    /// Its index in the target.
    pub index: usize,
    pub facts: &'a Function,
}

/// Probes of one kind: how they are planned and encoded.
pub trait Probes: Sized {
    /// The plan of a function.
    type Plan;

    /// Whether all files of a process share one memory.
    const IS_COMMON: bool;

    /// Bytes of shared memory that a target (with its index) needs, and most bytes of its
    /// trampolines near the code.
    fn needs(&self, number: usize, target: &Target) -> (u64, u64);

    /// Copies of the shared memory for tasks that run at the same time.
    fn copies(&self) -> Copies {
        Copies::default()
    }

    /// Plans the probes of a function.
    fn plan(&self, function: Probed<'_>, room: &mut Room) -> Self::Plan;

    /// Encodes a plan, and refuses in it each probe that cannot be encoded.
    fn write(
        &self,
        code: &Code,
        function: Probed<'_>,
        plan: &mut Self::Plan,
        written: &mut Written,
    );

    /// Called when a file was patched in a process, before any of its code runs; with what its trampolines
    /// write.
    fn patched(&mut self, _process: i32, _shared: &Arc<Shared>) {}

    /// Called when a process has made another one with a copy of its memory.
    fn forked(&mut self, _process: i32) {}

    /// Called when a thread is about to end, with the base of its own memory (fs).
    fn left(&mut self, _process: i32, _tid: i32, _base: u64) {}

    /// Called when all threads of a process are about to end, and its memory is still there.
    fn ending(&mut self, _process: i32) {}

    /// Called when all processes with a patched file have ended, or at the end: its shared memory is
    /// to be read now. With the plans of its functions, and how many probes they became.
    ///
    /// # Errors
    /// The reason why its target was not counted whole.
    fn closed(
        &mut self,
        number: usize,
        target: &Target,
        plans: Vec<Result<Self::Plan, Unprobed>>,
        shared: &Shared,
        probes: usize,
    ) -> Result<(), Unprobed>;

    /// Called again and again while the command runs.
    fn tick(&mut self) {}
}
