//! Timing: how many core cycles an iteration takes.
//!
//! | file | concern |
//! |---|---|
//! | `clock` | the time-stamp counter calibrated in core cycles; contention during a sample |
//! | `clock_source` | where core cycles come from: `tsc`, or counted by a PMU (`pmu_clock`) |
//! | `measure` | rounds of sentinel, long run, short run and calibration chains |
//! | `round_filter` | accepts rounds with a steady clock and no contention |
//! | `state`, `form_timing` | the fastest state of the rounds, and whether it reproduces |
//! | `steady` | whether unrolled code was in its steady state |
//! | `stats` | the few statistics that timing needs |

#[cfg(target_arch = "x86_64")]
pub(crate) mod clock;
#[cfg(target_arch = "x86_64")]
pub(crate) mod clock_source;
#[cfg(target_arch = "x86_64")]
pub(crate) mod form_timing;
#[cfg(target_arch = "x86_64")]
pub(crate) mod measure;
#[cfg(target_arch = "x86_64")]
pub(crate) mod pmu_clock;
#[cfg(target_arch = "x86_64")]
pub(crate) mod round_filter;
pub(crate) mod state;
pub(crate) mod stats;
#[cfg(target_arch = "x86_64")]
pub(crate) mod steady;
