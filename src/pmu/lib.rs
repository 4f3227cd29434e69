//! The machine, and counting and sampling with its kernel.
//!
//! | module | concern |
//! |---|---|
//! | [`machine`] | the processor, its PMUs, and what the kernel permits |
//! | `input` | standard input of a command that runs several times |
//! | `measurement` | what to count, of which tasks or CPUs ([`Request`]), and the counts ([`Measurement`]) |
//! | [`kernel`] | the collector's interface to the kernel: [`perf::Live`], or a simulated one |
//! | [`scripted`] | a simulated kernel for tests of the collector |
//! | [`perf`] | counting groups of events through perf_event_open ([`perf::measure`]) |
//! | [`sampling`] | sampling during a measurement: ring buffers of records |
//! | [`records`] | the layout of the kernel's records |
//! | [`build_id`] | build-ids of files and of the running kernel |
//!
//! Nothing here prints or interprets a measurement.

pub mod build_id;
mod input;
pub mod kernel;
pub mod machine;
mod measurement;
pub mod perf;
pub mod records;
pub mod sampling;
pub mod scripted;

use machine::{Machine, Root, tsc_hz_from_cpuid};

pub use input::Input;
pub use measurement::*;

impl Machine {
    /// This machine. Opens a perf event only if CPUID does not contain the frequency of the time-stamp
    /// counter.
    pub fn detect() -> Self {
        let mut machine = Self::at(&Root::system());
        machine.tsc_hz = tsc_hz_from_cpuid().or_else(perf::tsc_hz);
        machine
    }
}
