//! How often chosen places of a program are reached, by execute breakpoints.
//!
//! | file | concern |
//! |---|---|
//! | `request.rs` | what to count, and at what cost |
//! | `outcome.rs` | what was counted |
//! | `run.rs` | a run of a command, stopped at its exec, or a window of a live process |
//! | `place.rs` | places of files → addresses of a process |
//! | `follow.rs` | a command that is traced: its processes and threads from birth to end |
//! | `turns.rs` | what is too hot is counted in whole turns of a colder place, exactly |
//! | `walk.rs` | which turns those are |
//! | `tally.rs` | of a live process: counting in windows of time |
//! | `cost.rs` | what one hit costs here |
//!
//! Each hit costs a debug exception: microseconds. A place that is reached millions of times is
//! therefore counted at the start of a run, and then in windows all over the rest of it; how often
//! it is reached in that rest follows from a colder place that is counted throughout.
//!
//! Of a command windows are whole turns of the colder place, chosen by its count beforehand: the
//! thread is stopped at the entry that a window begins with, and at the one behind its end, so
//! that the hits between are exact. Of a live process, which is never stopped, windows are of time.

mod cost;
mod follow;
mod outcome;
mod place;
mod refused;
mod request;
mod run;
mod tally;
mod turns;
mod walk;

pub use cost::cost;
pub use outcome::{Counted, Known, Outcome, Sampled, Spoiled, Together, Window};
pub use request::{Ask, Limits, Site};
pub use run::{of_command, of_process};
pub use turns::turns_at_once;
