//! Timing: how many core cycles an iteration takes.
//!
//! | file | concern |
//! |---|---|
//! | `clock` | sources of core cycles, and contention during a sample |
//! | `measure` | rounds of sentinel, long run, short run and calibration chains |
//! | `round_filter` | accepts rounds with a steady clock and no contention |
//! | `state`, `form_timing` | the fastest state of the rounds, and whether it reproduces |
//! | `steady` | whether unrolled code was in its steady state |
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
