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
//! | `taken` | what an iteration takes as the program runs |
//! | `useless` | loads for which a prefetch cannot help |
//! | `refusal`, `missing` | why no prefetch is advised, or a part of the advice not known |
//! | `distance` | miss cost ÷ cycles of an iteration |
//! | `advice` | distance, loop and coverage |

mod advice;
mod cost;
mod distance;
mod missing;
mod pace;
mod peaks;
mod probed;
mod refusal;
mod taken;
#[cfg(test)]
mod tests;
mod trips;
mod useless;

pub use advice::{Advice, Request, Site, Timed, advise};
pub use cost::{Cost, Measured, Sampled};
pub use missing::{Hits, Missing};
pub use pace::{InFlight, Misses, Pace};
pub use peaks::{LEAST_SHARE, Peak, peaks};
pub use probed::{Probed, Served};
pub use refusal::Refusal;
pub use taken::Taken;
pub use trips::{TripCount, Trips};
