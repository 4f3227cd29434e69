//! The time-stamp counter as a clock of core cycles, and the sentinel that detects contention.

mod sentinel;
mod tsc;

pub use sentinel::Sentinel;
pub use tsc::{CHAINS, Calibration, Places, SentinelRun, TscClock, step};
