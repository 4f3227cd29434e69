//! How often the hot blocks of a report are entered, and so what an entry costs in the program.
//!
//! Entries are counted by execute breakpoints in further runs of the command, or in a window of a
//! live process. A block that is entered too often to be counted throughout follows from an enclosing
//! one that was: the head of a loop around its own, or the start of its function.

mod clock;
mod count_entries;
mod estimate;
mod plausible;
mod ratio;

pub use count_entries::{CountAsk, enter, target};
