//! The time-stamp counter as a clock of core cycles, and the sentinel that detects contention.
//!
//! | file | concern |
//! |---|---|
//! | `tsc` | calibration chains, the counter's ratio and granularity |
//! | `sentinel` | contention during a sample |
//! | `mixes` | unfused single-µop instructions that fill every issue slot |

pub mod mixes;
mod no_ratio;
mod sentinel;
mod tsc;

pub use no_ratio::NoRatio;
pub use sentinel::Sentinel;
pub use tsc::{CHAINS, Calibration, Places, SentinelRun, TscClock, step};
