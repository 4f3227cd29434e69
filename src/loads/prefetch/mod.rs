//! Advice on software prefetches, from recorded iterations and samples of loads (APT-GET: Jamilan et al., EuroSys
//! 2022), or from counts and fenced latencies by probes: pure, on plain data.
//!
//! | file | concern |
//! |---|---|
//! | `advice` | distance, loop and coverage |
//! | `cost` | cycles of an iteration without misses (IC), and what confirms them |
//! | `pace` | trips; what bounds iterations whose misses are prefetched: room for misses, and memory |
//! | `probed` | executions that probes timed one by one, in place of samples; loads that no prefetch helps |
//! | `refusal` | why no prefetch is advised, or a part of the advice not known |

mod advice;
mod cost;
mod pace;
mod probed;
mod refusal;
#[cfg(test)]
mod tests;

pub use advice::{Advice, Request, Site, Timed, advise};
pub use cost::{Cost, LEAST_SHARE, Measured, Peak, Sampled, peaks};
pub use pace::{InFlight, Misses, Pace, TripCount, Trips};
pub use probed::{Probed, Served};
pub use refusal::{Hits, Missing, Refusal, Taken};
