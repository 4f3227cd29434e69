//! What a kind of run puts into the code of files.

use super::mapped::Shared;
use super::target::Target;
use super::written::{Code, Written};
use crate::facts::Function;
use crate::plan::Room;
use std::rc::Rc;

/// Probes of one kind: how they are planned and encoded.
pub trait Probes: Sized {
    /// The plan of a function.
    type Plan;

    /// Whether all files of a process share one memory.
    const IS_COMMON: bool;

    /// Bytes of shared memory that a target (with its number) needs, and most bytes of its
    /// trampolines near the code.
    fn needs(&self, target: (usize, &Target)) -> (u64, u64);

    /// The plan of a function: its target and its number in that.
    fn plan(&self, function: (usize, usize), facts: &Function, room: &mut Room) -> Self::Plan;

    /// Encodes a plan. What cannot be encoded is refused in it.
    fn write(
        &self,
        code: &Code,
        of: (usize, &Target, usize),
        facts: &Function,
        plan: &mut Self::Plan,
        written: &mut Written,
    );

    /// Called when a file was patched, before any of its code runs; with what its trampolines write.
    fn patched(&mut self, _shared: &Rc<Shared>) {}

    /// Called again and again while the command runs.
    fn tick(&mut self) {}
}
