//! How often the hot blocks of a report are entered, and so what an entry costs in the program.
//!
//! Entries are counted by probes, in one further run of the command or in a window of a live process.
//! A block without a probe has the count that those around it give, or the reason why it has none.
//!
//! | file | concern |
//! |---|---|
//! | `count_ask` | the command or process to count in |
//! | `count_entries` | the order of the ways, and the report's rows |
//! | `probed` | by probes |
//! | `not_counted` | why a block has no entries |
//! | `same_end` | whether a further run ended like the first |
//! | `clock`, `plausible` | cycles of an entry, and whether they can be |

mod clock;
mod count_ask;
mod count_entries;
mod not_counted;
mod plausible;
mod probed;
mod same_end;

pub use count_ask::CountAsk;
pub use count_entries::{enter, target};
