//! Which caches serve a load, from the latencies of single executions between fences.
//!
//! | file | concern |
//! |---|---|
//! | `histogram` | latencies in ticks of the time-stamp counter |
//! | `levels` | latencies → shares of the levels, by what loads of known levels take on the same host |
//! | `resample` | the sampling error of a histogram |
//!
//! The counter advances in steps that may be longer than a hit takes, so that levels close to each other
//! differ only in how often each value comes, and thus in the mean. Memory is far from all caches.

mod histogram;
mod levels;
mod resample;
#[cfg(test)]
mod tests;

pub use histogram::{Histogram, Timed, granularity};
pub use levels::{Calibration, Level, Limits, Share, Unmeasured, limits, shares};
