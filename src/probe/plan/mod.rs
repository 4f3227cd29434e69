//! Where to put probes in a function: pure, from its facts and the room around its module.
//!
//! | file | concern |
//! |---|---|
//! | `site` | one count as data |
//! | `bytes` | which bytes of the code are taken |
//! | `candidates` | the instructions of a block that can be patched, and how |
//! | `room` | free addresses, from which trampolines take theirs |
//! | `components` | what the edges of a function join |
//! | `conservation` | what enters a block leaves it: derived counts, and the check of all |
//! | `spare` | hot blocks that need no probe |
//! | `no_place` | why there is no probe |
//! | `no_trampoline` | why an instruction has no trampoline |
//! | `choose` | blocks → [`Placement`] of their counts |
//! | `wish` | what is to be seen of an instruction |
//! | `branches`, `loads` | the branches, loads and stores of a function |
//! | `entries` | registers that are live at the entries of blocks |
//! | `follows` | blocks that no jump fits into |
//! | `spans` | the ways to observe the wishes of a block |
//! | `observe` | [`Wish`]es → [`Observer`]s of single instructions |

mod branches;
mod bytes;
mod candidates;
mod choose;
mod components;
mod conservation;
mod entries;
mod follows;
mod loads;
mod no_place;
mod no_trampoline;
mod observe;
mod room;
mod site;
mod spans;
mod spare;
#[cfg(test)]
mod tests;
mod wish;

pub use branches::branches;
pub use choose::{LONGEST, Placement, Planned, derive, plan, plan_live};
pub use conservation::{Solved, solve};
pub use entries::{AtEntry, LiveRegister, at_entries};
pub use loads::{Load, Unrecorded, loads, stores};
pub use no_place::NoPlace;
pub use no_trampoline::NoTrampoline;
pub use observe::{Observation, Observer, observe, observe_live};
pub use room::{PAGE, Room};
pub use site::{Kind, Site, Then};
pub use wish::{What, Wish};
