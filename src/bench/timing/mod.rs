//! Timing: how many core cycles an iteration takes.
//!
//! | file | concern |
//! |---|---|
//! | `clock` | where core cycles come from, and whether the core was ours meanwhile |
//! | `measure` | rounds of sentinel, long run, short run and calibration chains |
//! | `kept` | which rounds count |
//! | `state`, `timed` | the fastest state of the rounds, and whether it reproduces |
//! | `steady` | whether straight code was in its steady state |
//! | `stats` | the few statistics that timing needs |

#[cfg(target_arch = "x86_64")]
pub(crate) mod clock;
#[cfg(target_arch = "x86_64")]
pub(crate) mod form_timing;
#[cfg(target_arch = "x86_64")]
pub(crate) mod measure;
#[cfg(target_arch = "x86_64")]
pub(crate) mod round_filter;
pub(crate) mod state;
pub(crate) mod stats;
#[cfg(target_arch = "x86_64")]
pub(crate) mod steady;
