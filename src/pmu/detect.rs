//! This machine, with the frequency of its time-stamp counter.

use crate::machine::{Machine, Root, tsc_hz_from_cpuid};
use crate::perf;

impl Machine {
    /// This machine. Opens a perf event only if CPUID does not contain the frequency of the time-stamp
    /// counter.
    pub fn detect() -> Self {
        let mut machine = Self::at(&Root::system());
        machine.tsc_hz = tsc_hz_from_cpuid().or_else(perf::tsc_hz);
        machine
    }
}
