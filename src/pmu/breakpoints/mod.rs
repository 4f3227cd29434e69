//! Entry counts of chosen sites of a live process, by execute breakpoints.
//!
//! | file | concern |
//! |---|---|
//! | `request` | what to count, and at what cost |
//! | `outcome` | what was counted |
//! | `addresses` | sites of files → addresses in a process |
//! | `cost` | the cost of one hit on this machine |
//! | `refused` | the error where the kernel refuses breakpoints |
//! | `time_windows` | windows of time |
//! | `run` | counts a live process |
//!
//! Each hit costs a debug exception: microseconds. A site that is entered too often is therefore
//! counted in windows of time only. Its entries follow from an enclosing reference point (the head of an
//! outer loop or the function's start), which is entered less often and counted throughout. The process
//! is never stopped.

mod addresses;
mod cost;
mod outcome;
mod refused;
mod request;
mod run;
mod time_windows;

pub use cost::cost;
pub use outcome::{Counted, Coverage, Outcome, Together};
pub use request::{Limits, Site};
pub use run::of_process;
