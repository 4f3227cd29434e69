//! `tdtool record` of real programs on the machine at hand: mostly of the CPU clock, which needs no
//! PMU.
//!
//! Expected numbers follow from what is counted beside the samples: CPU time × frequency. On a busy
//! machine a recording may be unlucky, so what is compared with a number may be tried again.

pub mod busy;
mod controlled;
mod interruption;
mod permission;
mod replaced;
mod samples;
mod sessions;
mod targets;
