//! Advice on software prefetches, from recorded iterations and samples of loads (APT-GET: Jamilan et al., EuroSys
//! 2022), or from counts and fenced latencies by probes: pure, on plain data.
//!
//! | file | concern |
//! |---|---|
//! | `peaks` | peaks of a histogram: the modes of the iteration cycles |
//! | `trips` | how often a loop goes round |
//! | `cost` | cycles of an iteration without misses (IC), and what confirms them |
//! | `probed` | executions that probes timed one by one, in place of samples |
//! | `pace` | what bounds iterations whose misses are prefetched: room for misses, and memory |
//! | `refusal` | loads for which a prefetch cannot help, each with the reason |
//! | `distance` | miss cost ÷ cycles of an iteration |
//! | `advice` | distance, loop and coverage |

mod advice;
mod cost;
mod distance;
mod pace;
mod peaks;
mod probed;
mod refusal;
#[cfg(test)]
mod tests;
mod trips;

pub use advice::{Advice, Request, Site, Timed, advise};
pub use cost::{Cost, Measured, Sampled};
pub use pace::{InFlight, Misses, Pace, Taken};
pub use peaks::{LEAST_SHARE, Peak, peaks};
pub use probed::{Probed, Served};
pub use refusal::Refusal;
pub use trips::{TripCount, Trips};
