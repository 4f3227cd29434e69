//! The machine, and what its kernel counts and samples.
//!
//! | module | concern |
//! |---|---|
//! | [`machine`] | which processor, which PMUs, what the kernel permits, and why not |
//! | `measurement` | what to count and on whom ([`Request`]), and what comes of it ([`Measurement`]) |
//! | [`kernel`] | the kernel as the collector sees it: [`perf::Live`], or [`scripted`] in tests |
//! | [`perf`] | counting groups of events through perf_event_open ([`perf::measure`]) |
//! | [`sampling`] | sampling beside a measurement: rings of records |
//! | [`records`] | how the kernel lays out records |
//! | [`breakpoints`] | entry counts of chosen places, by execute breakpoints |
//! | [`build_id`] | build-ids of files and of the running kernel |
//!
//! Nothing here prints or decides what a measurement means.

pub mod breakpoints;
pub mod build_id;
mod detect;
pub mod kernel;
pub mod machine;
mod measurement;
pub mod perf;
pub mod records;
pub mod sampling;
pub mod scripted;

pub use measurement::*;
