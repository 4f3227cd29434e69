//! Timing: how many core cycles an iteration takes.
//!
//! | file | concern |
//! |---|---|
//! | `clock_source` | source of core cycles: `tsc`, or a PMU (`counting`) |
//! | `copies` | number of copies, how they repeat, where they start |
//! | `measure` | rounds of sentinel, long run, short run and calibration chains |
//! | `round_filter` | accepts rounds with a steady clock and no contention |
//! | `state`, `form_timing` | the fastest state of the rounds, and whether it reproduces |

#[cfg(target_arch = "x86_64")]
pub(crate) mod clock_source;
#[cfg(target_arch = "x86_64")]
pub(crate) mod copies;
#[cfg(target_arch = "x86_64")]
pub(crate) mod form_timing;
#[cfg(target_arch = "x86_64")]
pub(crate) mod measure;
#[cfg(target_arch = "x86_64")]
pub(crate) mod round_filter;
pub(crate) mod state;
