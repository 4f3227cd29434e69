//! Where to put the counts of a function: pure, from its facts and the room around its module.
//!
//! | file | concern |
//! |---|---|
//! | `site` | one probe as data |
//! | `candidates` | the instructions of a block that can be patched, and how |
//! | `room` | free addresses, from which trampolines take theirs |
//! | `conservation` | what enters a block leaves it: derived counts, and the check of all |
//! | `choose` | blocks → [`Placement`] |

mod candidates;
mod choose;
mod conservation;
mod room;
mod site;
#[cfg(test)]
mod tests;

pub use choose::{Placement, Planned, derive, plan, plan_live};
pub use conservation::{Solved, solve};
pub use room::{LONGEST, PAGE, Room};
pub use site::{Kind, Site, Then};
