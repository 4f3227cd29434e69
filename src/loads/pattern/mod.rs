//! Access patterns of loads, from bursts of their addresses and values.
//!
//! | file | concern |
//! |---|---|
//! | `origins` | which loads an address may be computed from: dataflow over a function |
//! | `relation` | whether one series of addresses is linear in one of values |
//! | `window` | a pattern for each window of executions |
//! | `class` | windows of all loads → their classes |
//!
//! Classes by the operations that compute the address, after Ayers, Litz, Kozyrakis and Ranganathan,
//! "Classifying Memory Access Patterns for Prefetching" (ASPLOS 2020): none is constant, an addition a
//! stride, a load a pointer chase or indirect, all else irregular. Dataflow gives the candidates, and
//! the recorded values confirm or refute them.

mod class;
mod origins;
mod relation;
#[cfg(test)]
mod tests;
mod window;

pub use class::{Classified, classify};
pub use origins::{Part, origins};
pub use window::{Event, Load};
