//! Core cycles: where they come from, and whether the core was ours while they passed.
//!
//! Without a PMU the clock is the time-stamp counter, put in relation to chains of known latency
//! that run between the measurements. `Clock` is the place where a PMU clock will stand beside it.

mod tsc;

pub use tsc::{CHAINS, Calibration, Places, TscClock};

/// Turns the ticks of a batch of rounds into core cycles.
pub trait Clock {
    /// Name in reports.
    fn name(&self) -> &'static str;
    /// Core cycles per tick while the rounds ran, or why that is not known.
    ///
    /// # Errors
    /// A reason, without a full stop.
    fn cycles_per_tick(&self, rounds: &[Calibration]) -> Result<f64, String>;
}
