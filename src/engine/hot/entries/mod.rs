//! How often the hot blocks of a report are entered, and so what an entry costs in the program.
//!
//! Entries are counted by probes, in one further run of the command or in a window of a live process.
//! Execute breakpoints count what has no probe: a block that is entered too often to be counted by them
//! throughout follows from an enclosing one that was: the head of a loop around its own, or the start
//! of its function.
//!
//! | file | concern |
//! |---|---|
//! | `count_ask` | the command or process to count in |
//! | `count_entries` | the order of the ways, and the report's rows |
//! | `probed` | by probes |
//! | `estimate`, `ratio` | by breakpoints, in a live process |
//! | `same_end` | whether a further run ended like the first |
//! | `clock`, `plausible` | cycles of an entry, and whether they can be |

mod clock;
mod count_ask;
mod count_entries;
mod estimate;
mod plausible;
mod probed;
mod ratio;
mod same_end;

pub use count_ask::CountAsk;
pub use count_entries::{enter, target};
