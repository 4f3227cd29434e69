//! Advice on software prefetches, from recorded iterations and samples of loads (APT-GET: Jamilan et al., EuroSys
//! 2022): pure, on plain data.
//!
//! | file | concern |
//! |---|---|
//! | `peaks` | peaks of a histogram: the modes of the iteration cycles |
//! | `trips` | how often a loop goes round |
//! | `cost` | cycles of an iteration without misses (IC), and what confirms them |
//! | `refusal` | loads for which a prefetch cannot help, each with the reason |
//! | `advice` | distance, loop and coverage |

mod advice;
mod cost;
mod peaks;
mod refusal;
#[cfg(test)]
mod tests;
mod trips;

pub use advice::{Advice, Request, Site, Timed, advise};
pub use cost::{Cost, Measured, Sampled};
pub use peaks::{LEAST_SHARE, Peak, peaks};
pub use trips::{TripCount, Trips};
