//! Timing: how many core cycles an iteration takes.
//!
//! | file | concern |
//! |---|---|
//! | `measure` | forms of a block, timed in passes by a source of core cycles |
//! | `round_filter` | accepts rounds with a steady clock and no contention |
//! | `state`, `form_timing` | the fastest state of the rounds, and whether it reproduces |

#[cfg(target_arch = "x86_64")]
pub(crate) mod form_timing;
#[cfg(target_arch = "x86_64")]
pub(crate) mod measure;
#[cfg(target_arch = "x86_64")]
pub(crate) mod round_filter;
pub(crate) mod state;
