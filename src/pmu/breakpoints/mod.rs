//! Entry counts of chosen sites of a program, by execute breakpoints.
//!
//! | file | concern |
//! |---|---|
//! | `request` | what to count, and at what cost |
//! | `outcome` | what was counted |
//! | `addresses` | sites of files → addresses in a process |
//! | `cost` | the cost of one hit on this machine |
//! | `refused` | the error where the kernel refuses breakpoints |
//! | `strata` | where in a run windows are: stratified random sampling |
//! | `window_sampling` | windows between entries of an enclosing reference point |
//! | `traced_command` | a traced command: all its threads, from start to end |
//! | `time_windows` | windows of time, for a live process |
//! | `run` | counts a command or a live process |
//!
//! Each hit costs a debug exception: microseconds. A site that is entered millions of times is
//! therefore counted at the start of a run and then in windows distributed over the rest. Its
//! entries in that rest follow from an enclosing reference point (the head of an outer loop or the
//! function's start), which is entered less often and counted throughout.
//!
//! In a traced command, windows begin and end at entries of the reference point, chosen by its count
//! in advance; the thread is stopped there, so that the hits between are exact. A live process is
//! never stopped: its windows are of time.

mod addresses;
mod cost;
mod outcome;
mod refused;
mod request;
mod run;
mod strata;
mod time_windows;
mod traced_command;
mod window_sampling;

pub use cost::cost;
pub use outcome::{Counted, Coverage, Outcome, Sampled, Together, Unusable, Window};
pub use request::{Ask, Limits, Site};
pub use run::{of_command, of_process};
pub use window_sampling::window_length;
