//! Chooses places for probes in a function: pure, from its analysis and the room around its module.
//!
//! | file | concern |
//! |---|---|
//! | `site` | one count as data |
//! | `bytes` | use of the bytes of a function |
//! | `candidates` | instructions of a block that can be patched |
//! | `room` | free addresses, from which trampolines take theirs |
//! | `components` | block ends joined by edges |
//! | `conservation` | flow conservation: derived counts, and checks |
//! | `spare` | hot blocks that need no probe |
//! | `no_place` | why there is no probe |
//! | `no_trampoline` | why an instruction has no trampoline |
//! | `choose` | [`Placement`]s of the counts of blocks |
//! | `request` | a request: an instruction, and what to observe of it |
//! | `branches`, `loads` | branches, loads and stores of a function |
//! | `entries` | registers live at the entries of blocks |
//! | `follows` | blocks too short for a jump |
//! | `spans` | possible probes for the requests of a block |
//! | `observe` | requests → [`Observer`]s |

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
mod request;
mod room;
mod site;
mod spans;
mod spare;
#[cfg(test)]
mod tests;

pub use branches::branches;
pub use choose::{LONGEST, Placement, Planned, derive, plan, plan_live};
pub use conservation::{Solved, solve};
pub use entries::{AtEntry, LiveRegister, at_entries};
pub use loads::{Load, Unrecorded, loads, stores};
pub use no_place::NoPlace;
pub use no_trampoline::NoTrampoline;
pub use observe::{Observation, Observer, observe, observe_live};
pub use request::{Request, What};
pub use room::{PAGE, Room};
pub use site::{Kind, Site, Then};
