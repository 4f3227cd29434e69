//! A kind of probe, as code of a file.

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

    /// Bytes of shared memory for a target (with its index), and most bytes of its trampolines near
    /// the code.
    fn needs(&self, number: usize, target: &Target) -> (u64, u64);

    /// Copies of the shared memory for concurrent tasks.
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

    /// Called when a file was patched in a process, before its code runs, with the memory that its
    /// trampolines write.
    fn patched(&mut self, _process: i32, _shared: &Arc<Shared>) {}

    /// Called when a process has forked, with a copy of its memory.
    fn forked(&mut self, _process: i32) {}

    /// Called when a thread is about to end, with the base of its own memory (fs).
    fn thread_ending(&mut self, _process: i32, _tid: i32, _base: u64) {}

    /// Called when all threads of a process are about to end, while its memory still exists.
    fn process_ending(&mut self, _process: i32) {}

    /// Called to read the shared memory of a file when all processes with it have ended, or at the
    /// end, with the plans of its functions and the number of its probes.
    ///
    /// # Errors
    /// The reason why the target was not fully probed.
    fn closed(
        &mut self,
        number: usize,
        target: &Target,
        plans: Vec<Result<Self::Plan, Unprobed>>,
        shared: &Shared,
        probes: usize,
    ) -> Result<(), Unprobed>;

    /// Called repeatedly while the command runs.
    fn tick(&mut self) {}
}
